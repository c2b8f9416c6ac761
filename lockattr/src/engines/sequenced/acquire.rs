//! Enters the queues of a claim, and learns whether its turn has come.

use std::sync::Arc;

use tokio::time::Instant;

use super::SequencedStore;
use super::claim_record::{MadeEntries, NoTurn, PendingRemoval, Phase, PriorState, Task};
use super::contention::watch_for_contention;
use super::gate::Purpose;
use super::queue_order;
use super::recipe::{Entered, Entry, LockRecipe, NewEntry};
use super::shared::ClaimQueues;
use super::value::entry_value;
use super::wait::{has_its_turn, has_waiters, wait};
use crate::store::{AcquireOutcome, AcquireRequest, Claim, StoreError, Waiting};
use crate::{FencingToken, Holder};

/// The counter of a fencing token must be smaller.
const MAX_FENCING_COUNTER: u64 = 1 << 53;

impl<E: LockRecipe> SequencedStore<E> {
    pub(super) async fn try_acquire(
        &self,
        request: &AcquireRequest,
    ) -> Result<AcquireOutcome, StoreError> {
        let AcquireRequest { claim, ttl, .. } = request;
        let (shared, token) = (&self.shared, claim.token());
        // Until then there is nothing to undo.
        let permit = shared.admit(Purpose::Acquire, 1).await?;
        let permit = shared.recipe.ready(permit).await.map_err(StoreError::not_sent)?;
        // Before `since`, because the holder counts its lease from there.
        claim.departs();
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
}
