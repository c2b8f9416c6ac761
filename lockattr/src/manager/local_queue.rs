//! Waiting inside the process, behind the caller that sends the requests to the store: until the
//! lock is handed off, this caller becomes the head, or its wait budget ends.
//!
//! So callers that request the same keys in the same mode share one entry in the store's wait
//! queue, and a crowd whose wait budgets end together sends no requests.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::LockManager;
use super::acquire::take_cached_lock;
use super::pending_acquire::{GrantedBy, MIN_RESPONSE_TIME, too_late};
use super::wait_for_handoff::wait_for_handoff;
use crate::hold::last_known::{Head, LastKnown, WaitQueues};
use crate::lock::key::{LockKey, named};
use crate::lock::options::ResolvedOptions;
use crate::lock::retry::Attempts;
use crate::observe::AcquireObservation;
use crate::platform::entropy::random_fraction;
use crate::queue::{Joined, Received};
use crate::store::{Claim, Sharing};
use crate::watchdog::Watchdog;
use crate::{Error, LockGuard};

/// The queue of this process in which a call waits.
pub(super) struct LocalQueue<'a> {
    name: Cow<'a, str>,
    queues: &'a Arc<WaitQueues>,
    watchdog: &'a Watchdog,
    /// Whether a holder hands the lock to the next waiter: a single key, held exclusively.
    pub(super) hands_off: bool,
    /// Whether several callers of this process may hold the lock at once.
    pub(super) shares: bool,
    /// How many waiters send requests at once after one of them was granted the lock.
    probes: usize,
}

/// What a caller may do after it has waited in a queue of its process.
pub(super) enum LocalOutcome {
    Granted(LockGuard),
    /// Acquire from the store, and wait in the store's queue; as the companion of this claim, if
    /// that has the lock.
    Head(Head, Option<Arc<Claim>>),
    /// Send one request, independently of the head; the caller rejoins the queue with this id.
    Probe(Option<u64>, Option<Arc<Claim>>),
    /// Send one for all waiters of this queue, because the head does not respond.
    ProbeForAll(u64, QueueProbe),
}

/// A caller that waits in a queue.
type Waiter = crate::queue::Waiter<ResolvedOptions, LockGuard, LastKnown>;

/// What happens to a waiter whose wait budget has ended.
enum AfterBudget {
    Received(Received<ResolvedOptions, LockGuard, LastKnown>),
    /// It sends a request for all waiters.
    Probes(QueueProbe),
}

/// Marks that a waiter sends a request for its whole queue. If it gets no answer, another may.
pub(super) struct QueueProbe {
    queues: Arc<WaitQueues>,
    name: Box<str>,
}

/// A waiting caller. If a writer gives up, readers here or elsewhere may share the lock with its
/// present holders.
struct WaitingWriter<'a> {
    queue: &'a LocalQueue<'a>,
    options: &'a ResolvedOptions,
    gives_up: bool,
}

impl Drop for WaitingWriter<'_> {
    fn drop(&mut self) {
        if self.gives_up && self.options.sharing == Sharing::Exclusive {
            let queue = self.queue;
            if let Some(readers) =
                queue.queues.read_known(&queue.name, LastKnown::readers).flatten()
            {
                readers.recheck(Instant::now());
            }
        }
    }
}

impl Drop for QueueProbe {
    fn drop(&mut self) {
        self.queues.probe_ended(&self.name);
    }
}

impl LockManager {
    /// The queue of this process for `keys`; `None` for a call that always acquires from the store
    /// directly.
    pub(super) fn queue_for<'a>(
        &'a self,
        options: &ResolvedOptions,
        keys: &'a [LockKey],
    ) -> Option<LocalQueue<'a>> {
        if options.by_store {
            return None;
        }
        let core = &self.shared.core;
        let watchdog = &*core.watchdog;
        let (exclusive, shared) = (core.queues(), core.shared_queues());
        let probes = match options.sharing {
            Sharing::Exclusive | Sharing::Permits(1) => 0,
            Sharing::Permits(_) => 1,
            // Each reader that is granted the lock sends two more, so that a crowd is served after
            // a few round trips, and a refusal costs at most two requests.
            Sharing::Shared => 2,
        };
        let store = watchdog.store();
        Some(match keys {
            [key] if options.sharing == Sharing::Exclusive => {
                let (name, queues) = (key.name().into(), exclusive);
                LocalQueue { name, queues, watchdog, hands_off: true, shares: false, probes }
            }
            [_] if !store.supports_companions() => return None,
            [key] => {
                // Readers wait in the writers' queue if a writer can let them in without the store.
                let is_let_in = options.sharing == Sharing::Shared && store.supports_downgrade();
                let (name, queues) =
                    (key.name().into(), if is_let_in { exclusive } else { shared });
                LocalQueue { name, queues, watchdog, hands_off: false, shares: true, probes }
            }
            keys => {
                // This queue hands nothing off, so two calls whose joined keys are equal by
                // accident would only wait for each other's requests.
                let names: Vec<_> = keys.iter().map(LockKey::name).collect();
                let (name, queues) = (names.join("\n").into(), &self.shared.several);
                LocalQueue { name, queues, watchdog, hands_off: false, shares: false, probes }
            }
        })
    }
}

impl LocalQueue<'_> {
    /// Joins the queue and waits there. `waiter_id` is the id of a caller that left this queue to
    /// send a request.
    pub(super) async fn wait(
        &self,
        options: &ResolvedOptions,
        keys: &[LockKey],
        probed: bool,
        waiter_id: Option<u64>,
        attempts: &mut Attempts,
        observation: &AcquireObservation,
    ) -> Result<LocalOutcome, Error> {
        if self.shares && !probed && self.queues.may_probe(&self.name) {
            return Ok(LocalOutcome::Probe(None, None));
        }
        loop {
            let mut writer = WaitingWriter { queue: self, options, gives_up: true };
            let mut waiter = match self.queues.join(&self.name, options.clone(), waiter_id) {
                Joined::Head(head, cached) => {
                    return Ok(match take_cached_lock(options, head, cached).await {
                        Ok(guard) => LocalOutcome::Granted(guard),
                        Err(head) => LocalOutcome::Head(head, None),
                    });
                }
                Joined::Waiting(waiter) => waiter,
            };
            let deadline = attempts.wait_deadline(Instant::now(), random_fraction());
            observation.waits();
            options.note_wait();
            let lost = |known: &LastKnown| known.claim().is_some_and(|claim| self.has_lost(claim));
            let received =
                timeout_at(deadline, wait_for_handoff(self.queues, &self.name, &mut waiter, lost))
                    .await;
            let received = match received {
                Ok(received) => received,
                Err(_) => {
                    match self.after_budget(&mut waiter, deadline, &named(keys), attempts).await? {
                        AfterBudget::Received(received) => received,
                        AfterBudget::Probes(probe) => {
                            return Ok(LocalOutcome::ProbeForAll(waiter.id(), probe));
                        }
                    }
                }
            };
            writer.gives_up = false;
            match received {
                Received::Lock(guard) if guard.ensure_held().is_ok() => {
                    return Ok(LocalOutcome::Granted(guard));
                }
                // The lease expired before this task was polled.
                Received::Lock(lapsed) => drop(lapsed),
                Received::Head(head)
                    if attempts.can_wait(Instant::now())
                        && !head.known().is_some_and(|known| known.is_done()) =>
                {
                    return Ok(LocalOutcome::Head(head, self.companion(waiter.id())));
                }
                // The head gave up, as this caller does, or the key is done: report what it learned.
                Received::Head(head) => match head.known() {
                    Some(known) => return Err(known.error(&named(keys), attempts)),
                    None => return Ok(LocalOutcome::Head(head, None)),
                },
                Received::Probe(waiter_id, with) => {
                    return Ok(LocalOutcome::Probe(Some(waiter_id), with.and_then(companion)));
                }
            }
        }
    }

    /// Ends the wait of a waiter whose wait budget has ended: reports what the head learned last,
    /// or learns within the time that any request gets. If the head does not respond, one of the
    /// waiters sends a request for all.
    async fn after_budget(
        &self,
        waiter: &mut Waiter,
        deadline: Instant,
        key: &str,
        attempts: &Attempts,
    ) -> Result<AfterBudget, Error> {
        let mut grace = deadline + MIN_RESPONSE_TIME;
        let mut another_probes = false;
        loop {
            let changed = match waiter.known() {
                Ok(known) => return Err(known.error(key, attempts)),
                Err(changed) => changed,
            };
            tokio::select! {
                biased;
                received = waiter.received() => return Ok(AfterBudget::Received(received)),
                // An answer is known, or the caller that sent a request for all is gone.
                _ = changed => {
                    if std::mem::take(&mut another_probes) {
                        grace = Instant::now();
                    }
                }
                () = sleep_until(grace) => {
                    if self.queues.may_probe_for_all(&self.name) {
                        let (queues, name) = (self.queues.clone(), (&*self.name).into());
                        return Ok(AfterBudget::Probes(QueueProbe { queues, name }));
                    }
                    if std::mem::replace(&mut another_probes, true) {
                        return Err(too_late(self.watchdog.store()).about(key));
                    }
                    // Its request gets as much time as any other.
                    grace += MIN_RESPONSE_TIME + MIN_RESPONSE_TIME / 5;
                }
            }
        }
    }

    /// Notifies the waiters of what a caller learned in parallel with a silent head.
    pub(super) fn learned(&self, known: LastKnown) {
        self.queues.learned(&self.name, known);
    }

    /// Notifies the waiters that a caller which sent a request for them has the lock.
    pub(super) fn learned_for_all(&self, known: LastKnown) {
        self.queues.learned_for_all(&self.name, known);
    }

    /// Called when a claim of this process was granted a lock that others may share. Unless the
    /// claim was a companion, the current waiters become its companions in the store's queue.
    pub(super) fn granted_shared(&self, claim: &Arc<Claim>, by: GrantedBy) {
        if self.shares && by != GrantedBy::CompanionRequest {
            self.queues.share(&self.name, LastKnown::Ours(claim.clone()));
        }
        // A permit granted by a notification was the only free one: any other would have gone to
        // the next claim in the store's queue.
        let was_only_free = by == GrantedBy::Notification && claim.sharing() != Sharing::Shared;
        if self.probes > 0 && !was_only_free {
            let can_share = |options: &ResolvedOptions| options.sharing != Sharing::Exclusive;
            self.queues.send_probes(&self.name, self.probes, can_share);
        }
    }

    /// Called when the store granted the lock to a caller of this queue.
    pub(super) fn was_granted(&self) {
        self.queues.was_granted(&self.name);
    }

    /// The claim whose companion the waiter with this id is.
    fn companion(&self, waiter_id: u64) -> Option<Arc<Claim>> {
        let known = self.queues.companion(&self.name, waiter_id).filter(|_| self.shares);
        known.and_then(companion)
    }

    fn has_lost(&self, claim: &Claim) -> bool {
        self.watchdog.has_lost(claim.token())
    }
}

/// The claim that holds the lock in this process.
fn companion(known: LastKnown) -> Option<Arc<Claim>> {
    match known {
        LastKnown::Ours(claim) => Some(claim),
        _ => None,
    }
}
