//! Locks as queues of entries, in servers that agree on one order: ZooKeeper and etcd.
//!
//! No process grants a lock. A waiter reads from the queue whether it is its turn
//! (`queue_order.rs`), and watches the entry before its own. A claim for several keys enters all
//! queues in one step, and holds its locks once it has its turn in each, so no process is
//! overtaken. The entries belong to a session of the store, which the ensemble's own client keeps
//! alive. A lease is shorter than the session: the store itself ends it (`shared.rs`), as long as
//! this process lives.

mod claim_record;
mod claims;
mod contention;
mod delegate;
#[cfg(fuzzing)]
pub(super) mod fuzzed;
mod gate;
mod held_locks;
mod queue_order;
mod recipe;
mod shared;
#[cfg(test)]
mod tests;
mod thread;
mod value;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, OwnerToken, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Store, StoreError, Subscriber, Waiting,
};
use crate::{FencingToken, HeldLock, Holder};
use claim_record::{MadeEntries, NoTurn, PendingRemoval, Phase, PriorState, Task};
use contention::watch_for_contention;
pub(crate) use delegate::sequenced_store;
pub(crate) use gate::Permit;
use gate::Purpose;
pub(crate) use recipe::{
    ClaimEntries, Entered, Entry, EntryValue, LockQueue, LockRecipe, NewEntry,
};
use shared::{ClaimQueues, Shared};
pub(crate) use thread::{StoreThread, ThreadGuard};
pub(crate) use value::entry_value;
use wait::{has_its_turn, has_waiters, wait};

/// The delay before a failed removal is retried.
const RETRY_REMOVAL_AFTER: Duration = Duration::from_millis(200);

/// The counter of a fencing token must be smaller.
const MAX_FENCING_COUNTER: u64 = 1 << 53;

/// A store over one ensemble of servers.
#[derive(Debug)]
pub(crate) struct SequencedStore<E: LockRecipe> {
    shared: Arc<Shared<E>>,
}

impl<E: LockRecipe> SequencedStore<E> {
    pub(crate) fn new(recipe: E) -> Self {
        Self { shared: Arc::new(Shared::new(recipe)) }
    }

    async fn try_acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        let AcquireRequest { claim, ttl, .. } = request;
        let (shared, token) = (&self.shared, claim.token());
        // Until then there is nothing to undo.
        let admitted = timeout(*ttl / 2, shared.admit(Purpose::Acquire, 1)).await;
        let Ok(permit) = admitted else {
            // Others come first, and too much of the lease would be over when it is granted.
            return Ok(AcquireOutcome::Held { holder: None, queued: None });
        };
        let permit = permit?;
        let since = Instant::now();
        let known = shared.claims().begin_acquire(claim, *ttl, since);
        shared.ensure_timer()?;
        let again = match known {
            // The running removal may also remove an entry that is made now.
            PriorState::Leaving => {
                return Err(StoreError::new("the claim is still being released: try again later"));
            }
            PriorState::HasEntries(made) => {
                let outcome = self.acquire_again(request, &made, since).await;
                if let Some(outcome) = outcome.map_err(StoreError::sent)? {
                    return Ok(outcome);
                }
                true
            }
            PriorState::Requested => true,
            PriorState::New => false,
        };
        let value = entry_value(claim, *ttl);
        let (keys, sharing) = (claim.keys(), claim.sharing());
        let entry = NewEntry { keys, token, sharing, value: &value };
        let entered = shared.recipe.enter(&entry, again, permit).await.inspect_err(|error| {
            if error.is_not_sent() && !again {
                shared.claims().acquire_not_sent(token);
            }
        })?;
        // From here on there is something to undo, so no error may report that nothing was sent.
        self.entered(request, entered, since).await.map_err(StoreError::sent)
    }

    /// Returns the outcome for a claim that has entries; `None` if it has lost one, and must enter
    /// again at the end of the queue.
    async fn acquire_again(
        &self,
        request: &AcquireRequest,
        made: &Arc<MadeEntries>,
        since: Instant,
    ) -> Result<Option<AcquireOutcome>, StoreError> {
        let (shared, claim) = (&self.shared, &request.claim);
        if let Some(queues) = shared.confirm_and_read(claim, made).await? {
            return self.settle(request, made, queues, since).await.map(Some);
        }
        if claim.keys().len() > 1 {
            // It would wait for its own remaining entries.
            let permit = shared.admit(Purpose::Release, 1).await?;
            let left = shared.recipe.leave(&[made.of(claim)], permit).await;
            left.into_iter().collect::<Result<Vec<_>, _>>()?;
        }
        match shared.claims().restart_acquire(claim, made, request.ttl, since) {
            true => Ok(None),
            false => Err(StoreError::new("the claim was released while its request was under way")),
        }
    }

    /// Records the entries that the claim has just made.
    async fn entered(
        &self,
        request: &AcquireRequest,
        entered: Entered,
        since: Instant,
    ) -> Result<AcquireOutcome, StoreError> {
        let (shared, claim) = (&self.shared, &request.claim);
        let token = claim.token();
        let Entered { session, counter, queues } = entered;
        let own = |queue: &Vec<Entry>| Some(queue[queue_order::position_of(queue, token)?].clone());
        let entries: Option<Box<[_]>> = queues.iter().map(own).collect();
        let entries = entries.ok_or_else(|| {
            StoreError::new("the claim's queue entry is missing right after it was made")
        })?;
        if counter >= MAX_FENCING_COUNTER {
            return Err(StoreError::new(format!(
                "the store's counter is at {counter}, which does not fit into the 53 bits of a fencing token"
            )));
        }
        let made = Arc::new(MadeEntries { session, counter, entries });
        shared.note_proof(session, since);
        if !shared.claims().record_entries(token, &made) {
            // The request took longer than the lease, so the claim was removed before its entries
            // were made.
            let pending =
                shared.claims().undo_late_entries(claim, &made, request.ttl, Instant::now());
            let undoing = shared.clone();
            shared.spawn(async move { undoing.end(Vec::from_iter(pending)).await })?.detach();
            return Err(StoreError::new("the store's reply took longer than the whole lease"));
        }
        shared.watch_session(session)?;
        self.settle(request, &made, queues, since).await
    }

    /// Returns the outcome for a claim that has entries in these queues.
    async fn settle(
        &self,
        request: &AcquireRequest,
        made: &Arc<MadeEntries>,
        queues: ClaimQueues,
        since: Instant,
    ) -> Result<AcquireOutcome, StoreError> {
        let (shared, claim) = (&self.shared, &request.claim);
        let token = claim.token();
        let turn = has_its_turn(claim, &queues)
            .ok_or_else(|| StoreError::new("the claim's queue entry has been removed"))?;
        if !turn {
            let no_turn = shared.claims().queue_or_remove(token, made, request.waiting, since);
            match no_turn {
                NoTurn::Queued => {
                    let mut queued = None;
                    if request.waiting != Waiting::Not {
                        queued = Some(shared.recheck_after(claim, &queues));
                        self.spawn_waiter(claim, made, &queues)?;
                    }
                    let holder = self.blocking_holder(claim, &queues).await;
                    return Ok(AcquireOutcome::Held { holder, queued });
                }
                NoTurn::Remove(pending) => return self.refuse(claim, pending, &queues).await,
                // The queues were read before that.
                NoTurn::Granted | NoTurn::Gone => {}
            }
        }
        if !shared.claims().mark_held(token, made, Instant::now()) {
            return Err(StoreError::new("the store session ended while the request was under way"));
        }
        shared.ensure_timer()?;
        let contended = has_waiters(&queues);
        if !contended {
            watch_for_contention(shared, claim, &queues);
        }
        let fencing = FencingToken::from_counter(made.counter);
        Ok(AcquireOutcome::Acquired { fencing, contended })
    }

    /// Removes a claim that does not wait, and returns its outcome.
    async fn refuse(
        &self,
        claim: &Claim,
        pending: PendingRemoval,
        queues: &ClaimQueues,
    ) -> Result<AcquireOutcome, StoreError> {
        let shared = &self.shared;
        let leaving = shared.leave(std::slice::from_ref(&pending));
        let (left, holder) =
            futures_util::future::join(leaving, self.blocking_holder(claim, queues)).await;
        if let Some(Err(error)) = left.into_iter().next() {
            // The claim may ask again at any time, so the removal must not wait for the lease to
            // end.
            shared.retry_removal(&pending);
            return Err(error);
        }
        Ok(AcquireOutcome::Held { holder, queued: None })
    }

    /// Spawns a task that waits for the claim's turn, unless one is running.
    fn spawn_waiter(
        &self,
        claim: &Arc<Claim>,
        made: &Arc<MadeEntries>,
        queues: &ClaimQueues,
    ) -> Result<(), StoreError> {
        let shared = &self.shared;
        let is_waiting = shared
            .claims()
            .get(claim.token())
            .is_some_and(|record| record.task.as_ref().is_some_and(Task::is_running));
        if !is_waiting {
            let task = wait(shared.clone(), claim.clone(), made.clone(), queues.clone());
            let task = shared.spawn(task)?;
            if let Some(record) = shared.claims().get(claim.token())
                && matches!(record.phase, Phase::Waiting { .. })
            {
                record.task = Some(task);
            }
        }
        Ok(())
    }

    /// Returns the holder of a lock that the claim waits for, if that can be determined.
    async fn blocking_holder(&self, claim: &Claim, queues: &ClaimQueues) -> Option<Box<Holder>> {
        for (key, queue) in claim.keys().iter().zip(queues) {
            let nth = queue_order::position_of(queue, claim.token()).unwrap_or_default();
            if nth < queue_order::served(queue) {
                continue;
            }
            if let Ok(Some(holder)) = self.shared.holder(key, queue).await {
                return Some(Box::new(holder));
            }
        }
        None
    }

    async fn renew_all(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        let (shared, now) = (&self.shared, Instant::now());
        let held: Vec<_> = {
            let mut claims = shared.claims();
            let mut held = |renewal: &RenewRequest| {
                let token = renewal.claim.token();
                let made =
                    claims.get(token).filter(|record| record.phase == Phase::Holding)?.made.clone();
                // Extended before the reply, which may be late: the lease must not end meanwhile.
                claims.extend_to(token, now + renewal.ttl);
                made
            };
            renewals.iter().map(&mut held).collect()
        };
        let with = renewals.iter().zip(&held);
        let entries: Vec<_> =
            with.filter_map(|(it, made)| Some(made.as_ref()?.of(&it.claim))).collect();
        let mut confirmed = match entries.is_empty() {
            true => Vec::new(),
            false => shared.recipe.confirm(&entries).await,
        }
        .into_iter();
        let (mut claims, mut lost) = (shared.claims(), false);
        let mut settle = |token: OwnerToken, made: &Option<Arc<MadeEntries>>| {
            if made.is_none() {
                return Ok(RenewOutcome::NotHeld);
            }
            let there = confirmed.next().unwrap_or_else(|| {
                Err(StoreError::new("the store sent no reply about this claim"))
            })?;
            if let Some(made) = made.as_ref().filter(|_| there) {
                shared.note_proof(made.session, now);
            }
            // The lease may have ended meanwhile.
            let holds = claims.get(token).is_some_and(|record| record.phase == Phase::Holding);
            if holds && !there {
                lost |= claims.entries_lost(token, now);
            }
            Ok(if holds && there { RenewOutcome::Renewed } else { RenewOutcome::NotHeld })
        };
        let with = renewals.iter().zip(&held);
        let outcomes = with
            .map(|(it, made)| {
                let outcome = settle(it.claim.token(), made)?;
                if outcome == RenewOutcome::Renewed && fence_is_beyond(it, made.as_deref()) {
                    return Err(StoreError::new(
                        "this store cannot raise its fencing counter that high",
                    ));
                }
                Ok(outcome)
            })
            .collect();
        drop(claims);
        if lost {
            // If the timer cannot run, the remaining entries end with the session.
            let _ended_soon = shared.ensure_timer();
        }
        outcomes
    }

    async fn release_all(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        let (shared, now) = (&self.shared, Instant::now());
        let (mut delayed, mut removals) = (Vec::new(), Vec::<PendingRemoval>::new());
        let actions: Vec<_> = {
            let mut claims = shared.claims();
            let mut begin = |release| {
                let release: &ReleaseRequest = release;
                let token = release.claim.token();
                let holds = claims.get(token).filter(|record| record.phase == Phase::Holding);
                let made = holds.and_then(|record| record.made.clone());
                match made {
                    Some(made) if !release.after.is_zero() => {
                        delayed.push((release, made));
                        ReleaseAction::HoldAtLeast
                    }
                    _ => match claims.begin_removal(token, now) {
                        Some(pending) => {
                            removals.push(pending);
                            ReleaseAction::Remove
                        }
                        None => ReleaseAction::NotHeld,
                    },
                }
            };
            releases.iter().map(&mut begin).collect()
        };
        let (kept, left) = futures_util::future::join(
            async {
                if delayed.is_empty() {
                    Vec::new()
                } else {
                    self.hold_at_least(&delayed, now).await
                }
            },
            async { if removals.is_empty() { Vec::new() } else { shared.leave(&removals).await } },
        )
        .await;
        let (mut kept, mut left) = (kept.into_iter(), left.into_iter());
        let outcome = |action: &ReleaseAction| {
            let held = match action {
                ReleaseAction::NotHeld => Some(Ok(false)),
                ReleaseAction::HoldAtLeast => kept.next(),
                ReleaseAction::Remove => left.next(),
            };
            let held = held.unwrap_or_else(|| {
                Err(StoreError::new("the store sent no reply about this claim"))
            })?;
            Ok(if held { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld })
        };
        actions.iter().map(outcome).collect()
    }

    /// Keeps locks held for a while longer (`hold_at_least`). Returns for each whether it was held.
    async fn hold_at_least(
        &self,
        delayed: &[(&ReleaseRequest, Arc<MadeEntries>)],
        now: Instant,
    ) -> Vec<Result<bool, StoreError>> {
        let shared = &self.shared;
        let held: Vec<_> = delayed.iter().map(|(release, made)| made.of(&release.claim)).collect();
        let confirmed = shared.recipe.confirm(&held).await;
        let mut to_notify = Vec::new();
        {
            let mut claims = shared.claims();
            for ((release, _), held) in delayed.iter().zip(&confirmed) {
                let (token, end) = (release.claim.token(), now + release.after);
                match held {
                    Ok(true) => {
                        claims.set_end(token, Some(end));
                        let waiting = claims.waiting_for(release.claim.keys());
                        to_notify.extend(waiting.into_iter().map(|token| (token, end)));
                    }
                    // Its remaining entries are removed at once.
                    Ok(false) => _ = claims.entries_lost(token, now),
                    Err(_) => {}
                }
            }
        }
        // After the mutex is released, because the subscriber may lock it.
        for (token, end) in to_notify {
            if let Some(subscriber) = shared.subscribers.get(token.subscriber()) {
                subscriber.ask_again(token, end);
            }
        }
        match shared.ensure_timer() {
            Ok(()) => confirmed,
            Err(error) => confirmed.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

/// Whether the fence is greater than the number that this store gave. Only a number greater than
/// that one is certain for a later acquisition.
fn fence_is_beyond(renewal: &RenewRequest, made: Option<&MadeEntries>) -> bool {
    let counter = made.map(|made| FencingToken::from_counter(made.counter));
    renewal.fence.is_some_and(|fence| counter.is_none_or(|counter| fence > counter))
}

/// What one release does.
enum ReleaseAction {
    NotHeld,
    HoldAtLeast,
    Remove,
}

impl<E: LockRecipe> Store for SequencedStore<E> {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        self.try_acquire(request).await
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.shared.subscribers.add(subscriber);
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        self.renew_all(renewals).await
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        self.release_all(releases).await
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        let queue = self.shared.recipe.queue(key).await?;
        self.shared.holder(key, &queue).await
    }

    async fn held_locks(&self, prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        self.shared.held_locks(prefix).await
    }

    async fn force_release(&self, key: &LockKey) -> Result<bool, StoreError> {
        self.shared.force_release(key).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.shared.recipe.ping().await
    }

    /// An entry ends with the session, and `max_ttl` is at least half of the session timeout.
    fn entry_lifetime(&self, _ttl: Duration) -> Duration {
        self.shared.recipe.max_ttl() * 2
    }

    fn longest_ttl(&self) -> Duration {
        self.shared.recipe.max_ttl()
    }

    fn answered_since(&self, _key: &LockKey, since: Instant) -> bool {
        self.shared.recipe.answered_since(since)
    }

    fn refuses_claim(&self, claim: &Claim) -> Option<String> {
        self.shared.recipe.refuses(claim)
    }
}

impl<E: LockRecipe> Drop for SequencedStore<E> {
    fn drop(&mut self) {
        self.shared.stop();
    }
}
