//! What an acquisition does while another holder has the lock: it waits in the queue of this
//! process, sends requests independently of the head of that queue, and waits in the store's queue
//! for a grant.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::LockManager;
use super::acquire::unless_shut_down;
use super::local_queue::{LocalOutcome, LocalQueue};
use super::pending_acquire::{
    GrantedBy, MIN_RESPONSE_TIME, PendingAcquire, Refusal, not_sent, too_late,
};
use crate::hold::last_known::{Head, LastKnown, contended};
use crate::lease::validity;
use crate::lock::key::{LockKey, named};
use crate::lock::options::ResolvedOptions;
use crate::lock::retry::Attempts;
use crate::observe::AcquireObservation;
use crate::platform::entropy::random_fraction;
use crate::store::{Claim, Grant, MAX_RECHECK, Notification};
use crate::{Error, LockGuard};

/// How often the head of a queue signals that its task is polled.
const SHOW_LIFE_EVERY: Duration = Duration::from_secs(2);

/// Up to this many waiting claims of one manager recheck every `retry_delay`; twice as many recheck
/// half as often.
const FULL_RATE_WAITERS: u32 = 32;

/// How a wait in the queue of this process ends.
pub(super) enum Waited {
    Granted(LockGuard),
    /// This caller is the head and acquires from the store; as the companion of this claim, if that
    /// holds the lock.
    Head(Head, Option<Arc<Claim>>),
}

impl LockManager {
    /// Waits in the queue of this process. A waiter whose lock can be shared meanwhile sends
    /// requests to the store, independently of the head.
    pub(super) async fn wait_in_process<'a>(
        &'a self,
        queue: &'a LocalQueue<'a>,
        options: &'a ResolvedOptions,
        keys: &Arc<[LockKey]>,
        attempts: &mut Attempts,
        observation: &AcquireObservation,
    ) -> Result<Waited, Error> {
        let (mut probed, mut waiter_id) = (false, None);
        loop {
            let wait = queue.wait(options, keys, probed, waiter_id, attempts, observation);
            let (companion, for_all) = match wait.await? {
                LocalOutcome::Granted(guard) => return Ok(Waited::Granted(guard)),
                LocalOutcome::Head(head, with) => return Ok(Waited::Head(head, with)),
                LocalOutcome::Probe(waiter, with) => {
                    waiter_id = waiter;
                    (with, None)
                }
                LocalOutcome::ProbeForAll(waiter, probe) => {
                    waiter_id = Some(waiter);
                    (None, Some(probe))
                }
            };
            probed = true;
            let pending = self.pending_acquire(options, keys, None, Some(queue))?;
            attempts.begin();
            let granted = pending.companion(companion).probe(attempts, for_all.is_some()).await;
            // By now all waiters know the answer.
            drop(for_all);
            if let Some(guard) = granted {
                return unless_shut_down(guard, keys).map(Waited::Granted);
            }
        }
    }

    /// Releases the locks on `keys` that this process has cached, before a request for them
    /// is sent to the store.
    pub(super) async fn release_cached(&self, keys: &[LockKey]) {
        for key in keys {
            for cached in self.shared.core.queues().take_cached(Some(key.name())) {
                // No caller holds it, so its loss concerns no caller.
                cached.release_in_background().await.ok();
            }
        }
    }
}

impl PendingAcquire<'_> {
    /// Sends a request without joining the store's queue. The queue of this process learns of a
    /// refusal. With `for_all`, other waiters whose wait budget has ended wait for the answer.
    pub(super) async fn probe(mut self, attempts: &Attempts, for_all: bool) -> Option<LockGuard> {
        let (request, now) = (self.request(), Instant::now());
        let until = |left| match for_all {
            true => Some(now + MIN_RESPONSE_TIME),
            false => attempts.response_deadline(left, MIN_RESPONSE_TIME),
        };
        match self.send(request, until).await {
            Ok(guard) => Some(guard),
            Err(refusal) => {
                if let Some(queue) = self.queue {
                    queue.learned(refusal.known());
                }
                None
            }
        }
    }

    /// Waits in the store's queue after a refusal, and sends a new request at intervals until the
    /// lock is granted or the wait budget ends.
    pub(super) async fn wait_in_store(
        &mut self,
        mut refusal: Refusal,
        keys: &[LockKey],
        mut attempts: Attempts,
        observation: &AcquireObservation,
    ) -> Result<LockGuard, Error> {
        let mut unreachable = false;
        loop {
            let (now, random) = (Instant::now(), random_fraction());
            let queued = refusal.is_queued();
            if self.options.campaigns {
                self.campaign_learned(&refusal, &mut unreachable);
            }
            let again = match &refusal {
                _ if self.options.campaigns => Some(self.campaign_again_at(&refusal, now, random)),
                // It is held until its period is over, and no waiter is granted it before.
                Refusal::Held { holder: Some(holder), .. } if holder.done => None,
                Refusal::Held { queued: Some(soon), .. } => attempts.recheck_at(now, *soon, random),
                _ => attempts.pause(now, random),
            };
            let over = |refusal, attempts: &Attempts| match refusal {
                Refusal::Held { holder, .. } => contended(&named(keys), attempts, holder),
                Refusal::Unknown(error) => error.about(&named(keys)),
            };
            let Some(until) = again else { return Err(over(refusal, &attempts)) };
            observation.waits();
            self.options.note_wait();
            if let Some(guard) = self.granted_before(until).await {
                return Ok(guard);
            }
            // The store notifies a queued claim: another request would return the same answer.
            if queued && !attempts.can_wait(Instant::now()) {
                return Err(over(refusal, &attempts));
            }
            attempts.begin();
            refusal = match self.attempt(&attempts).await {
                Ok(guard) => return unless_shut_down(guard, keys),
                Err(refusal) => refusal,
            };
        }
    }

    /// Waits for a grant, until `until` or until the store asks for a new request.
    async fn granted_before(&mut self, mut until: Instant) -> Option<LockGuard> {
        let Some(subscription) = &self.subscription else {
            sleep_until(until).await;
            return None;
        };
        let grant = loop {
            let sign = Instant::now() + SHOW_LIFE_EVERY;
            let notification = tokio::select! {
                biased;
                notification = subscription.next() => notification,
                () = sleep_until(until.min(sign)) => {
                    if until <= sign {
                        return None;
                    }
                    // Shows the waiters behind it that this task is still polled.
                    if let Some(head) = &self.head {
                        head.show_life();
                    }
                    continue;
                }
            };
            match notification {
                Notification::Granted(grant) => break grant,
                Notification::AskAgain(at) if at <= Instant::now() => return None,
                Notification::AskAgain(at) => until = until.min(at),
            }
        };
        let Grant { fencing, since, contended } = grant;
        // A grant that is too old is requested again, which restarts its lease. Without renewals
        // the lease is the deadline of the work, so it must be nearly new.
        let oldest = validity(self.options.ttl) / if self.options.renew { 2 } else { 10 };
        if Instant::now() >= since + oldest {
            return None;
        }
        Some(self.granted(fencing, since, contended, GrantedBy::Notification).await)
    }

    /// How often a queued claim sends a new request: every `retry_delay`, and less often if this
    /// manager waits for so many locks that these requests alone would keep the store busy.
    pub(super) fn recheck_every(&self) -> Duration {
        let waits = u32::try_from(self.shared.subscriber.waiting()).unwrap_or(u32::MAX);
        self.options.wait_budget.delay.saturating_mul(waits.div_ceil(FULL_RATE_WAITERS).max(1))
    }

    /// The outcome of a request that got no answer in its time. `at_least`: that was the least time
    /// that a request gets.
    pub(super) fn no_response(&mut self, asked_at: Instant, at_least: bool) -> Refusal {
        let has_left = self.claim.departed_at().is_some();
        self.must_undo |= has_left;
        // If the store had its time and was silent, what was known before may have changed.
        let since = match has_left && !at_least {
            true => asked_at,
            false => asked_at.checked_sub(MAX_RECHECK).unwrap_or(asked_at),
        };
        match self.shared.refusals.since(&self.claim, since) {
            Some(holder) => Refusal::Held { holder, queued: None },
            None if has_left => Refusal::Unknown(too_late(self.shared.core.store())),
            None => Refusal::Unknown(not_sent(self.shared.core.store())),
        }
    }

    pub(super) fn share_in_process(&mut self, queue: &LocalQueue<'_>, by: GrantedBy) {
        let head = self.head.take();
        if head.is_none() {
            queue.learned_for_all(LastKnown::Ours(self.claim.clone()));
        }
        queue.granted_shared(&self.claim, by);
        queue.was_granted();
        // Now the next waiter of this process sends its request.
        drop(head);
    }
}
