//! Standing in the queue: waiting for those before, and being granted the lock; and, having it, hearing
//! that others wait.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use tokio::time::{Instant, sleep};

use super::claim_record::{MadeEntries, Phase};
use super::queue_order::{blockers, position_of, served};
use super::recipe::{Entry, LockRecipe};
use super::shared::{ClaimQueues, Shared};
use crate::FencingToken;
use crate::store::{Claim, Grant, LockKey};

/// A hold that is over sooner never asks whether others wait for it.
const MIN_HOLD_TO_WATCH: Duration = Duration::from_millis(10);

/// Whether the claim has its turn in all of its lines; none if it does not stand in one.
pub(super) fn has_its_turn(claim: &Claim, queues: &ClaimQueues) -> Option<bool> {
    let mut all = true;
    for queue in queues {
        all &= position_of(queue, claim.token())? < served(queue);
    }
    Some(all)
}

/// Whether others wait in these lines.
pub(super) fn has_waiters(queues: &ClaimQueues) -> bool {
    queues.iter().any(|queue| served(queue) < queue.len())
}

/// Waits until it is the claim's turn, and tells its subscriber.
pub(super) async fn wait<E: LockRecipe>(
    shared: Arc<Shared<E>>,
    claim: Arc<Claim>,
    made: Arc<MadeEntries>,
    mut queues: ClaimQueues,
) {
    loop {
        wait_for_blocker(&shared.recipe, &claim, &queues).await;
        let looked = shared.check_turn(&claim, &made).await;
        queues = match looked {
            Ok((Some(queues), since)) if has_its_turn(&claim, &queues) == Some(true) => {
                return grant(&shared, &claim, &made, &queues, since).await;
            }
            Ok((Some(queues), _)) if has_its_turn(&claim, &queues).is_some() => queues,
            other => {
                // Else an entry is gone: removed by hand, or with its session. When it asks again it
                // comes anew, and until then it is known what else there is of it.
                if let Err(error) = other {
                    let key = claim.key().as_str();
                    tracing::debug!(key, %error, "a line could not be looked at");
                }
                // The wait budget is the manager's.
                match shared.subscriber(&claim) {
                    Some(subscriber) => subscriber.ask_again(claim.token(), Instant::now()),
                    None => abandon(&shared, &claim).await,
                }
                return;
            }
        };
    }
}

/// Returns when the line may have moved for this claim: in the first where it has not its turn.
async fn wait_for_blocker<E: LockRecipe>(recipe: &E, claim: &Claim, queues: &ClaimQueues) {
    for (key, queue) in claim.keys().iter().zip(queues) {
        let Some(nth) = position_of(queue, claim.token()) else { return };
        if nth < served(queue) {
            continue;
        }
        match blockers(queue, nth) {
            [one] => recipe.gone(key, one).await,
            some => {
                let gone = some.iter().map(|one| Box::pin(recipe.gone(key, one)));
                select_all(gone).await;
            }
        }
        return;
    }
}

/// The claim has its locks, in a lease that runs since then.
async fn grant<E: LockRecipe>(
    shared: &Arc<Shared<E>>,
    claim: &Arc<Claim>,
    made: &Arc<MadeEntries>,
    queues: &ClaimQueues,
    since: Instant,
) {
    let token = claim.token();
    let Some(subscriber) = shared.subscriber(claim) else { return abandon(shared, claim).await };
    let told = shared
        .claims()
        .get(token)
        .is_some_and(|record| record.phase == Phase::Waiting { told: true });
    if told {
        return subscriber.ask_again(token, Instant::now());
    }
    // This also ends what goes on here, which is at its end.
    if shared.claims().mark_held(token, made, Instant::now()) {
        let contended = has_waiters(queues);
        subscriber
            .granted(token, Grant::new(FencingToken::from_counter(made.number), since, contended));
        if shared.ensure_timer().is_err() || contended {
            return;
        }
        watch_for_contention(shared, claim, queues);
    }
}

/// The claim's manager is gone: the next one's turn.
async fn abandon<E: LockRecipe>(shared: &Arc<Shared<E>>, claim: &Arc<Claim>) {
    let this = shared.claims().get(claim.token()).and_then(|record| record.task.take());
    if let Some(this) = this {
        // It ends with what follows.
        this.detach();
    }
    let pending = shared.claims().begin_removal(claim.token(), Instant::now());
    shared.end(Vec::from_iter(pending)).await;
}

/// Has the claim's subscriber told when others come to wait for its lock, if it could do something about
/// it: only a lock of one key that no process shares is handed off inside a process, or kept.
pub(super) fn watch_for_contention<E: LockRecipe>(
    shared: &Arc<Shared<E>>,
    claim: &Arc<Claim>,
    queues: &ClaimQueues,
) {
    let ([key], [queue]) = (claim.keys(), &queues[..]) else { return };
    if queue.iter().any(|entry| entry.sharing != crate::store::Sharing::Exclusive) {
        return;
    }
    let heard = notify_when_contended(shared.clone(), claim.clone(), key.clone(), queue.clone());
    // Without it, others wait a little longer.
    if let Ok(task) = shared.spawn(heard)
        && let Some(record) =
            shared.claims().get(claim.token()).filter(|it| it.phase == Phase::Holding)
    {
        record.task = Some(task);
    }
}

async fn notify_when_contended<E: LockRecipe>(
    shared: Arc<Shared<E>>,
    claim: Arc<Claim>,
    key: LockKey,
    queue: Vec<Entry>,
) {
    sleep(MIN_HOLD_TO_WATCH).await;
    shared.recipe.grown(&key, &queue).await;
    if let Some(subscriber) = shared.subscriber(&claim) {
        subscriber.contended(key.name());
    }
}
