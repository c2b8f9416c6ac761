//! One acquisition: re-enter (`reenter.rs`), or wait in this process (`local_queue.rs`) and ask the
//! store, until the lock is granted or the wait budget ends.

use std::sync::Arc;

use futures_util::future::OptionFuture;
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use super::LockManager;
use super::local_queue::{LocalOutcome, LocalQueue};
use super::pending_acquire::{PendingAcquire, Refusal};
use crate::hold::chain;
use crate::hold::last_known::{Head, contended};
use crate::lock::key::{LockKey, named};
use crate::lock::options::ResolvedOptions;
use crate::lock::retry::Attempts;
use crate::lock::site::Site;
use crate::manager::body::{Granted, Start};
use crate::observe::AcquireObservation;
use crate::platform::entropy::random_fraction;
use crate::store::{Claim, Sharing};
use crate::{Error, LockGuard};

impl LockManager {
    /// Acquires the lock for a body, as a call that begins now.
    pub(crate) async fn start(&self, options: &ResolvedOptions, key: &str) -> Result<Start, Error> {
        if let Some(nested) = self.enter_at_once(options, key).await? {
            return Ok(Start::Nested(nested, options.on_lost));
        }
        let began = Instant::now();
        let guard = self.acquire_on(options, key).await?;
        Ok(Granted::new(guard, options.clone(), self.clone(), began).into())
    }

    pub(crate) async fn acquire_on(
        &self,
        options: &ResolvedOptions,
        key: &str,
    ) -> Result<LockGuard, Error> {
        // What needs no store is ready at once, and a loop of it must let others run too.
        consume_budget().await;
        // Before anything is made for it: a call that enters again costs next to nothing.
        if let Some(outer) = chain::find(&self.shared.core, key) {
            return self.enter_again(options, &outer, key).await;
        }
        self.acquire_new(options, Arc::new([self.key(key)?])).await
    }

    /// All of `keys` or none: those that this call chain has already are entered again.
    pub(crate) async fn acquire_all_on(
        &self,
        options: &ResolvedOptions,
        keys: Vec<LockKey>,
    ) -> Result<LockGuard, Error> {
        // One wait budget for the whole call.
        let began = Instant::now();
        let in_all = |error: Error| error.waited_since(began);
        let (entries, rest) = self.in_chain(keys);
        let mut also = Vec::new();
        for (outer, key) in &entries {
            let options = options.after(began.elapsed());
            also.push(self.enter_again(&options, outer, key.as_str()).await.map_err(in_all)?);
        }
        if !rest.is_empty() {
            let options = options.after(began.elapsed());
            let guard = self.acquire_new(&options, rest.into()).await.map_err(in_all)?;
            // The others may have been lost while it waited.
            also.iter().try_for_each(|turn| turn.ensure_held())?;
            return Ok(guard.and(also));
        }
        match also.pop() {
            Some(innermost) => Ok(innermost.and(also)),
            None => Err(Error::InvalidKey("no key is given: name what to lock".into())),
        }
    }

    pub(crate) async fn acquire_new(
        &self,
        options: &ResolvedOptions,
        keys: Arc<[LockKey]>,
    ) -> Result<LockGuard, Error> {
        if let Some(site) = options.site {
            self.check_lock_order(options, site);
        }
        let wait = AcquireObservation::begin(options, &keys, &self.shared.recorder);
        let outcome = wait.instrument(self.acquire_unobserved(options, keys, &wait)).await;
        observed(wait, outcome.map(|guard| guard.at(options.site)))
    }

    /// What waits inside of other holds should do so in one order everywhere.
    fn check_lock_order(&self, options: &ResolvedOptions, inner: Site) {
        if self.shared.settings.check_lock_order && !options.wait_budget.is_once() {
            let now = Instant::now();
            let around = chain::entries().filter(|entry| {
                let is_ours = Arc::ptr_eq(entry.core(), &self.shared.core);
                is_ours && entry.ensure_held(now).is_ok()
            });
            self.shared.lock_order.record(inner, around.filter_map(|entry| entry.site()));
        }
    }

    async fn acquire_unobserved(
        &self,
        options: &ResolvedOptions,
        keys: Arc<[LockKey]>,
        observed: &AcquireObservation,
    ) -> Result<LockGuard, Error> {
        let (core, watchdog) = (&self.shared.core, &self.shared.core.watchdog);
        // First of all, also for what an earlier runtime left behind: it may be this very key's
        // release.
        watchdog.start()?;
        let mut head = None;
        if let Some(name) = handed_off(options, &keys) {
            // Before anything else is made: a lock that is kept costs next to nothing.
            if let Some((place, kept)) = core.lines().try_join(name) {
                match take_cached_lock(options, place, kept).await {
                    Ok(guard) => return Ok(guard),
                    Err(place) => head = Some(place),
                }
            }
        }
        let search = self.search(options, &keys);
        let wait = self.wait_and_ask(options, &keys, head, observed);
        tokio::select! {
            biased;
            outcome = wait => outcome,
            () = watchdog.stopped() => Err(shut_down(&named(&keys))),
            Some(deadlock) = OptionFuture::from(search) => Err(deadlock),
        }
    }

    async fn wait_and_ask(
        &self,
        options: &ResolvedOptions,
        keys: &Arc<[LockKey]>,
        mut head: Option<Head>,
        observed: &AcquireObservation,
    ) -> Result<LockGuard, Error> {
        let mut attempts = options.wait_budget.start(Instant::now());
        let queue = self.queue_for(options, keys);
        if !queue.as_ref().is_some_and(|queue| queue.hands_off) {
            self.release_cached(keys).await;
        }
        let (mut probed, mut number) = (false, None);
        loop {
            let (mut beside, mut companion, mut for_all) = (false, None, None);
            if let Some(queue) = &queue
                && head.is_none()
                && !attempts.is_once()
            {
                let wait = queue.wait(options, keys, probed, number, &mut attempts, observed);
                match wait.await? {
                    LocalOutcome::Granted(guard) => return Ok(guard),
                    LocalOutcome::AskStore(place, with) => (head, companion) = (Some(place), with),
                    LocalOutcome::Probe(place, with) => {
                        (probed, number) = (true, place);
                        (beside, companion) = (true, with);
                    }
                    LocalOutcome::ProbeForAll(place, asks) => {
                        (probed, number) = (true, Some(place));
                        (beside, for_all) = (true, Some(asks));
                    }
                }
            }
            let asking = self.claim(options, keys, head.take(), queue.as_ref())?.beside(companion);
            if !beside {
                return self.ask_until_over(asking, keys, attempts, observed).await;
            }
            attempts.begin();
            let asked = self.probe(asking, keys, &attempts, for_all.is_some()).await;
            // Its answer is known to all by now.
            drop(for_all);
            if let Some(guard) = asked? {
                return Ok(guard);
            }
        }
    }

    /// A claim for `keys` on its way to the store.
    fn claim<'a>(
        &'a self,
        options: &'a ResolvedOptions,
        keys: &Arc<[LockKey]>,
        head: Option<Head>,
        queue: Option<&'a LocalQueue<'a>>,
    ) -> Result<PendingAcquire<'a>, Error> {
        let shared = &self.shared;
        let (subscriber, room) = (shared.subscriber.id(), shared.identity.room(options.function));
        let claim = Claim::labelled(subscriber, keys.clone(), options.sharing, room, |value| {
            shared.identity.write_label(value, options.function);
        });
        if let Some(why) = shared.core.store().refuses_claim(&claim) {
            return Err(Error::InvalidOptions(why));
        }
        let asking = PendingAcquire::new(shared, claim, options, head, queue);
        // After it is noted that we ask, so that a shutdown either is seen here or sees this.
        if shared.core.watchdog.is_shut_down() {
            return Err(shut_down(&named(keys)));
        }
        Ok(asking)
    }

    /// Asks once, beside the asker of this process; nothing where the lock is another's or nobody
    /// knows, because the asker finds that out too.
    async fn probe(
        &self,
        mut asking: PendingAcquire<'_>,
        keys: &[LockKey],
        attempts: &Attempts,
        for_all: bool,
    ) -> Result<Option<LockGuard>, Error> {
        match asking.probe(attempts, for_all).await {
            Some(guard) if guard.is_shut_down() => Err(shut_down(&named(keys))),
            granted => Ok(granted),
        }
    }

    /// Asks, and waits in the store's queue, until the lock is granted or the wait budget ends.
    async fn ask_until_over(
        &self,
        mut asking: PendingAcquire<'_>,
        keys: &[LockKey],
        mut attempts: Attempts,
        observed: &AcquireObservation,
    ) -> Result<LockGuard, Error> {
        loop {
            attempts.begin();
            let refusal = match asking.ask(&attempts).await {
                // Lost already if the manager was shut down meanwhile; dropped, it is given back.
                Ok(guard) if guard.is_shut_down() => return Err(shut_down(&named(keys))),
                Ok(guard) => return Ok(guard),
                Err(refusal) => refusal,
            };
            let (now, random) = (Instant::now(), random_fraction());
            let queued = refusal.is_queued();
            let again = match &refusal {
                Refusal::Held { queued: Some(soon), .. } => attempts.recheck_at(now, *soon, random),
                _ => attempts.pause(now, random),
            };
            let over = |refusal, attempts: &Attempts| match refusal {
                Refusal::Held { holder, .. } => contended(&named(keys), attempts, holder),
                Refusal::Unknown(error) => error.about(&named(keys)),
            };
            let Some(until) = again else { return Err(over(refusal, &attempts)) };
            observed.waits();
            if let Some(guard) = asking.granted_before(until).await {
                return Ok(guard);
            }
            // It looked all the time: one more question would find what the last one did.
            if queued && !attempts.can_wait(Instant::now()) {
                return Err(over(refusal, &attempts));
            }
        }
    }

    /// Gives back what is kept in this process of the locks that are about to be asked for.
    async fn release_cached(&self, keys: &[LockKey]) {
        for key in keys {
            for kept in self.shared.core.lines().take_cached(Some(key.name())) {
                // If it was lost meanwhile, nobody held it who would have to know.
                kept.release_in_background().await.ok();
            }
        }
    }
}

/// Takes the lock that was kept for the place in front, if there is one and it fits.
pub(super) async fn take_cached_lock(
    options: &ResolvedOptions,
    head: Head,
    kept: Option<LockGuard>,
) -> Result<LockGuard, Head> {
    match kept {
        Some(kept) => kept.take_cached_lock(options, head).await,
        None => Err(head),
    }
}

/// The name of the lock, if its queue in this process hands it on: one key, for one holder.
fn handed_off<'a>(options: &ResolvedOptions, keys: &'a [LockKey]) -> Option<&'a str> {
    match keys {
        [key] if options.sharing == Sharing::Exclusive && !options.by_store => Some(key.name()),
        _ => None,
    }
}

pub(super) fn shut_down(key: &str) -> Error {
    Error::ShutDown { key: key.to_owned() }
}

/// Reports how an acquisition ended; its guard reports how the hold ends.
pub(super) fn observed(
    wait: AcquireObservation,
    outcome: Result<LockGuard, Error>,
) -> Result<LockGuard, Error> {
    match outcome {
        Ok(mut guard) => {
            let watched = wait.acquired(guard.frame().hold());
            guard.watch(watched);
            Ok(guard)
        }
        Err(error) => {
            wait.refused(&error);
            Err(error)
        }
    }
}
