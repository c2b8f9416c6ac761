//! The first acquisition of a lock, from the call to the store and back, in the order in which it
//! runs: `acquire_new`, `acquire_unobserved`, `acquire_or_wait`, `acquire_from_store`,
//! `PendingAcquire::{attempt, send, granted}`.
//!
//! Other modules deal with other callers and processes: `local_queue.rs` and `contended.rs` with
//! the wait queue of this process, `contended.rs` with the store's, `deadlock.rs` with deadlocks.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::OptionFuture;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

use super::LockManager;
use super::contended::Waited;
use super::local_queue::LocalQueue;
use super::pending_acquire::{GrantedBy, MIN_RESPONSE_TIME, PendingAcquire, Refusal, lapsed};
use crate::hold::last_known::{Head, LastKnown};
use crate::lease::{GrantedLease, validity};
use crate::lock::key::{LockKey, named};
use crate::lock::options::ResolvedOptions;
use crate::lock::retry::Attempts;
use crate::observe::AcquireObservation;
use crate::store::{AcquireOutcome, AcquireRequest, Claim, Sharing, Waiting};
use crate::{Error, FencingToken, LockGuard};

impl LockManager {
    /// Acquires the locks on `keys`, which this call chain does not hold, and reports the outcome.
    pub(crate) async fn acquire_new(
        &self,
        options: &ResolvedOptions,
        keys: Arc<[LockKey]>,
    ) -> Result<LockGuard, Error> {
        if let Some(site) = options.site {
            self.check_lock_order(options, site);
        }
        let observation = AcquireObservation::begin(
            options,
            &keys,
            &self.shared.recorder,
            self.shared.core.watchdog.telemetry(),
        );
        let outcome =
            observation.instrument(self.acquire_unobserved(options, keys, &observation)).await;
        report(observation, outcome.map(|guard| guard.at(options.site)))
    }

    /// Takes a lock that this process has cached, or acquires it from the store, until the manager
    /// shuts down.
    async fn acquire_unobserved(
        &self,
        options: &ResolvedOptions,
        keys: Arc<[LockKey]>,
        observation: &AcquireObservation,
    ) -> Result<LockGuard, Error> {
        let (core, watchdog) = (&self.shared.core, &self.shared.core.watchdog);
        // First, because the watchdog also sends the requests that an earlier runtime left behind:
        // perhaps the release of this key.
        watchdog.start()?;
        let mut head = None;
        if let Some(name) = handed_off(options, &keys) {
            // Before any other allocation, so that a cached lock costs next to nothing.
            if let Some((first, cached)) = core.queues().try_join(name) {
                match take_cached_lock(options, first, cached).await {
                    Ok(guard) => return Ok(guard),
                    Err(first) => head = Some(first),
                }
            }
        }
        let search = self.search(options, &keys);
        let acquisition = self.acquire_or_wait(options, &keys, head, observation);
        tokio::select! {
            biased;
            outcome = acquisition => outcome,
            () = watchdog.stopped() => Err(shut_down(&named(&keys))),
            Some(deadlock) = OptionFuture::from(search) => Err(deadlock),
        }
    }

    /// Acquires from the store at once, unless callers of this process already wait for these
    /// locks.
    async fn acquire_or_wait(
        &self,
        options: &ResolvedOptions,
        keys: &Arc<[LockKey]>,
        mut head: Option<Head>,
        observation: &AcquireObservation,
    ) -> Result<LockGuard, Error> {
        let mut attempts = options.wait_budget.start(Instant::now());
        let queue = self.queue_for(options, keys);
        if !queue.as_ref().is_some_and(|queue| queue.hands_off) {
            self.release_cached(keys).await;
        }
        let mut companion = None;
        if let Some(queue) = &queue
            && head.is_none()
            && !attempts.is_once()
        {
            let waited = self.wait_in_process(queue, options, keys, &mut attempts, observation);
            (head, companion) = match waited.await? {
                Waited::Granted(guard) => return Ok(guard),
                Waited::Head(head, companion) => (Some(head), companion),
            };
        }
        let pending = self.pending_acquire(options, keys, head, queue.as_ref())?;
        self.acquire_from_store(pending.companion(companion), keys, attempts, observation).await
    }

    /// Makes a claim for `keys` under a new owner token.
    pub(super) fn pending_acquire<'a>(
        &'a self,
        options: &'a ResolvedOptions,
        keys: &Arc<[LockKey]>,
        head: Option<Head>,
        queue: Option<&'a LocalQueue<'a>>,
    ) -> Result<PendingAcquire<'a>, Error> {
        let shared = &self.shared;
        let (subscriber, label_len) =
            (shared.subscriber.id(), shared.identity.label_len(options.function));
        let claim =
            Claim::labelled(subscriber, keys.clone(), options.sharing, label_len, |value| {
                shared.identity.write_label(value, options.function);
            });
        if let Some(why) = shared.core.store().refuses_claim(&claim) {
            return Err(Error::InvalidOptions(why));
        }
        let pending = PendingAcquire::new(shared, claim, options, head, queue);
        // After `new` has counted this acquisition: either this check finds the shutdown, or the
        // shutdown waits for this acquisition.
        if shared.core.watchdog.is_shut_down() {
            return Err(shut_down(&named(keys)));
        }
        Ok(pending)
    }

    /// Sends a request to the store. If another process holds the lock, waits in the store's queue.
    async fn acquire_from_store(
        &self,
        mut pending: PendingAcquire<'_>,
        keys: &[LockKey],
        mut attempts: Attempts,
        observation: &AcquireObservation,
    ) -> Result<LockGuard, Error> {
        attempts.begin();
        match pending.attempt(&attempts).await {
            Ok(guard) => unless_shut_down(guard, keys),
            Err(refusal) => pending.wait_in_store(refusal, keys, attempts, observation).await,
        }
    }
}

impl PendingAcquire<'_> {
    /// Sends one request to the store, and joins the store's queue if there is time to wait.
    pub(super) async fn attempt(&mut self, attempts: &Attempts) -> Result<LockGuard, Refusal> {
        let mut request = self.request();
        if attempts.can_wait(Instant::now()) {
            let token = self.claim.token();
            self.subscription.get_or_insert_with(|| self.shared.subscriber.subscribe(token));
            request = request.waiting(Waiting::Queued).recheck_every(self.recheck_every());
        }
        let until = |left| attempts.response_deadline(left, MIN_RESPONSE_TIME);
        let refused = self.send(request, until).await;
        if let (Err(refusal), Some(head)) = (&refused, &self.head) {
            head.learned(refusal.known());
        }
        refused
    }

    /// Sends the request, and waits for the answer: `until` a time that depends on when the request
    /// leaves this process. A grant becomes a guard.
    pub(super) async fn send(
        &mut self,
        request: AcquireRequest,
        until: impl Fn(Instant) -> Option<Instant>,
    ) -> Result<LockGuard, Refusal> {
        let was_unanswered = std::mem::replace(&mut self.unanswered, true);
        let (ttl, asked_at) = (self.options.ttl, Instant::now());
        let store = self.shared.core.store();
        // Checked before the request is sent, because the store executes a later release after it.
        let companion = self.companion.as_ref();
        let is_companion = companion.is_some_and(|it| self.shared.core.watchdog.holds(it.token()));
        self.claim.begin_request(store.notes_departures());
        self.is_asking = true;
        let response = answer_to(&self.claim, asked_at, &until, store.acquire(&request)).await;
        self.is_asking = false;
        let Some(response) = response else {
            let at_least = until(asked_at).is_some_and(|ends| ends <= asked_at + MIN_RESPONSE_TIME);
            self.unanswered = was_unanswered || self.claim.departed_at().is_some();
            return Err(self.no_response(asked_at, at_least));
        };
        // What waits in this process uses up neither the lease nor the store's time.
        let requested_at = self.claim.departed_at().unwrap_or(asked_at);
        self.unanswered = was_unanswered || matches!(&response, Err(error) if !error.is_not_sent());
        match response {
            // The grant arrived after its own lease had expired. The next attempt acquires the lock
            // again, or the drop releases it.
            Ok(AcquireOutcome::Acquired { .. })
                if Instant::now() >= requested_at + validity(ttl) =>
            {
                self.must_undo = true;
                Err(Refusal::Unknown(lapsed(ttl)))
            }
            Ok(AcquireOutcome::Acquired { fencing, contended }) => {
                let by =
                    if is_companion { GrantedBy::CompanionRequest } else { GrantedBy::Request };
                Ok(self.granted(fencing, requested_at, contended, by).await)
            }
            Ok(AcquireOutcome::Held { holder, queued }) => {
                self.must_undo |= queued.is_some();
                self.shared.refusals.learned(&self.claim, holder.clone());
                Err(Refusal::Held { holder, queued })
            }
            Err(error) => {
                self.must_undo |= !error.is_not_sent();
                Err(Refusal::Unknown(error))
            }
        }
    }

    /// Makes the guard of a lock that was granted to a request sent at `requested_at`, and notifies
    /// the waiters of this process.
    pub(super) async fn granted(
        &mut self,
        fencing: FencingToken,
        requested_at: Instant,
        contended: bool,
        by: GrantedBy,
    ) -> LockGuard {
        let (options, core) = (self.options, &self.shared.core);
        self.shared.refusals.forget(&self.claim);
        let lease = GrantedLease {
            claim: self.claim.clone(),
            fencing,
            requested_at,
            ttl: options.ttl,
            renew: options.renew,
            max_hold: options.max_hold,
            progress_within: options.progress_within,
        };
        let (guard, woken) = match self.queue.filter(|queue| !queue.hands_off) {
            None => {
                let head = self.head.take();
                let ours = LastKnown::Ours(self.claim.clone());
                match (&head, self.queue) {
                    (Some(head), _) => head.granted(contended, ours, Instant::now()),
                    // This request was for all waiters, because the head does not respond.
                    (None, Some(queue)) => queue.learned(ours),
                    (None, None) => {}
                }
                LockGuard::granted(lease, options.hold_at_least, head, core)
            }
            Some(queue) => {
                let granted = LockGuard::granted(lease, options.hold_at_least, None, core);
                self.share_in_process(queue, by);
                granted
            }
        };
        self.must_undo = false;
        if !self.unanswered {
            self.claim.left_queue();
        }
        if woken {
            // A woken task runs next on this thread, and no other thread takes it over: a body that
            // computes from its first line would keep the watchdog from running.
            yield_now().await;
        }
        guard
    }
}

/// Returns the store's answer; `None` if it does not come in time. When this returns, the request
/// is dropped.
async fn answer_to<T>(
    claim: &Claim,
    asked_at: Instant,
    until: &impl Fn(Instant) -> Option<Instant>,
    request: impl Future<Output = T>,
) -> Option<T> {
    let (mut request, mut now) = (pin!(request), asked_at);
    loop {
        // As if it left now, if it has not.
        let Some(ends) = until(claim.departed_at().unwrap_or(now)) else {
            return Some(request.await);
        };
        if ends <= now {
            return None;
        }
        if let Ok(answer) = timeout_at(ends, request.as_mut()).await {
            return Some(answer);
        }
        now = Instant::now();
    }
}

/// The name of the lock if its queue in this process hands it off: a single key, held exclusively.
fn handed_off<'a>(options: &ResolvedOptions, keys: &'a [LockKey]) -> Option<&'a str> {
    match keys {
        [key] if options.sharing == Sharing::Exclusive && !options.by_store => Some(key.name()),
        _ => None,
    }
}

/// Takes the lock that this process has cached, if it suits `options`.
pub(super) async fn take_cached_lock(
    options: &ResolvedOptions,
    head: Head,
    cached: Option<LockGuard>,
) -> Result<LockGuard, Head> {
    match cached {
        Some(cached) => cached.take_cached_lock(options, head).await,
        None => Err(head),
    }
}

pub(super) fn shut_down(key: &str) -> Error {
    Error::ShutDown { key: key.to_owned() }
}

/// Refuses a lock that was granted while the manager shut down: it is already lost, and dropping it
/// releases it.
pub(super) fn unless_shut_down(guard: LockGuard, keys: &[LockKey]) -> Result<LockGuard, Error> {
    if guard.is_shut_down() {
        return Err(shut_down(&named(keys)));
    }
    Ok(guard)
}

/// Reports how an acquisition ended; its guard reports how the hold ends.
pub(super) fn report(
    observation: AcquireObservation,
    outcome: Result<LockGuard, Error>,
) -> Result<LockGuard, Error> {
    match outcome {
        Ok(mut guard) => {
            let watched = observation.acquired(guard.frame().hold());
            guard.watch(watched);
            Ok(guard)
        }
        Err(error) => {
            observation.refused(&error);
            Err(error)
        }
    }
}
