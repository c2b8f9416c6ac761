//! Waits in the queue for a claim's turn and grants it the lock.

use std::sync::Arc;

use futures_util::future::select_all;
use tokio::time::Instant;

use super::claim_record::{MadeEntries, Phase};
use super::contention::watch_for_contention;
use super::gate::Purpose;
use super::queue_order::{blockers, position_of, served};
use super::recipe::LockRecipe;
use super::shared::{ClaimQueues, Shared};
use crate::FencingToken;
use crate::store::{Claim, Grant};

/// Whether the claim has its turn in all of its queues; `None` if it is missing in one.
pub(super) fn has_its_turn(claim: &Claim, queues: &ClaimQueues) -> Option<bool> {
    let mut all = true;
    for queue in queues {
        all &= position_of(queue, claim.token())? < served(queue);
    }
    Some(all)
}

/// Whether other claims wait in these queues.
pub(super) fn has_waiters(queues: &ClaimQueues) -> bool {
    queues.iter().any(|queue| served(queue) < queue.len())
}

/// Waits for the claim's turn, and notifies its subscriber.
pub(super) async fn wait<E: LockRecipe>(
    shared: Arc<Shared<E>>,
    claim: Arc<Claim>,
    made: Arc<MadeEntries>,
    mut queues: ClaimQueues,
) {
    loop {
        wait_for_blocker(&shared, &claim, &queues).await;
        let turn = shared.check_turn(&claim, &made).await;
        queues = match turn {
            Ok((Some(queues), since)) if has_its_turn(&claim, &queues) == Some(true) => {
                return grant(&shared, &claim, &made, &queues, since).await;
            }
            Ok((Some(queues), _)) if has_its_turn(&claim, &queues).is_some() => queues,
            other => {
                // Else an entry is gone: removed by hand, or with its session. The claim then asks
                // again and enters anew. Until then its other entries stay known.
                if let Err(error) = other {
                    let key = claim.key().as_str();
                    tracing::debug!(
                        lockattr.key = key, error.message = %error,
                        "the wait queue could not be read; the claim asks again"
                    );
                }
                // The manager decides how long the claim waits.
                match shared.subscriber(&claim) {
                    Some(subscriber) => subscriber.ask_again(claim.token(), Instant::now()),
                    None => abandon(&shared, &claim).await,
                }
                return;
            }
        };
    }
}

/// Returns when the first queue in which the claim has not its turn may have moved for it.
async fn wait_for_blocker<E: LockRecipe>(shared: &Shared<E>, claim: &Claim, queues: &ClaimQueues) {
    let until_gone = async |key, entry| {
        // Else that cannot be known, as when the connection fails later.
        if let Ok(permit) = shared.admit(Purpose::Acquire, 1).await {
            shared.recipe.wait_until_gone(key, entry, permit).await;
        }
    };
    for (key, queue) in claim.keys().iter().zip(queues) {
        let Some(nth) = position_of(queue, claim.token()) else { return };
        if nth < served(queue) {
            continue;
        }
        match blockers(queue, nth) {
            [one] => until_gone(key, one).await,
            some => {
                let gone = some.iter().map(|one| Box::pin(until_gone(key, one)));
                select_all(gone).await;
            }
        }
        return;
    }
}

/// Grants the claim its locks, with a lease that runs since `since`.
async fn grant<E: LockRecipe>(
    shared: &Arc<Shared<E>>,
    claim: &Arc<Claim>,
    made: &Arc<MadeEntries>,
    queues: &ClaimQueues,
    since: Instant,
) {
    let token = claim.token();
    let Some(subscriber) = shared.subscriber(claim) else { return abandon(shared, claim).await };
    let notify_only = shared
        .claims()
        .get(token)
        .is_some_and(|record| record.phase == Phase::Waiting { notify_only: true });
    if notify_only {
        return subscriber.ask_again(token, Instant::now());
    }
    // This also aborts the current task, which awaits nothing after it.
    if shared.claims().mark_held(token, made, Instant::now()) {
        let contended = has_waiters(queues);
        subscriber
            .granted(token, Grant::new(FencingToken::from_counter(made.counter), since, contended));
        if shared.ensure_timer().is_err() || contended {
            return;
        }
        watch_for_contention(shared, claim, queues);
    }
}

/// Removes a claim whose manager is gone, so that the next waiter gets its turn.
async fn abandon<E: LockRecipe>(shared: &Arc<Shared<E>>, claim: &Arc<Claim>) {
    let this = shared.claims().get(claim.token()).and_then(|record| record.task.take());
    if let Some(this) = this {
        // The removal must not abort the current task.
        this.detach();
    }
    let pending = shared.claims().begin_removal(claim.token(), Instant::now());
    shared.end(Vec::from_iter(pending)).await;
}
