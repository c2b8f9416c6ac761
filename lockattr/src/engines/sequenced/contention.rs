//! Notifies the holder of a lock when other claims come to wait for it.
//!
//! Most holds end before a watch could be of use. So a new hold is only noted, and one task looks a
//! moment later at those that are still there: a task for each would wake the store's thread with
//! each acquisition and each release.

use std::collections::VecDeque;
use std::mem::replace;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::claim_record::Phase;
use super::gate::Purpose;
use super::recipe::{Entry, LockRecipe};
use super::shared::{ClaimQueues, Shared};
use crate::platform::sync::Mutex;
use crate::store::{Claim, Sharing};

/// A shorter hold is never watched.
const MIN_HOLD_TO_WATCH: Duration = Duration::from_millis(10);

/// The holds that are not watched yet.
#[derive(Debug, Default)]
pub(super) struct NewHolds(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    holds: VecDeque<NewHold>,
    has_task: bool,
}

#[derive(Debug)]
struct NewHold {
    since: Instant,
    claim: Arc<Claim>,
    /// The queue as it was then.
    seen: Vec<Entry>,
}

/// Notifies the claim's subscriber when others come to wait for its lock, if it could react: only
/// an exclusive lock of one key is handed off inside a process, or cached.
pub(super) fn watch_for_contention<E: LockRecipe>(
    shared: &Arc<Shared<E>>,
    claim: &Arc<Claim>,
    queues: &ClaimQueues,
) {
    let ([_], [queue]) = (claim.keys(), &queues[..]) else { return };
    if queue.iter().any(|entry| entry.sharing != Sharing::Exclusive) {
        return;
    }
    let has_task = {
        let mut noted = shared.new_holds.0.lock();
        let hold = NewHold { since: Instant::now(), claim: claim.clone(), seen: queue.clone() };
        noted.holds.push_back(hold);
        replace(&mut noted.has_task, true)
    };
    if has_task {
        return;
    }
    match shared.spawn(watch_holds(Arc::downgrade(shared))) {
        Ok(task) => task.detach(),
        // Without the task, other waiters wait a little longer.
        Err(_) => *shared.new_holds.0.lock() = Noted::default(),
    }
}

/// Watches the holds that last, until none is noted any more.
async fn watch_holds<E: LockRecipe>(shared: Weak<Shared<E>>) {
    loop {
        sleep(MIN_HOLD_TO_WATCH).await;
        let Some(shared) = shared.upgrade() else { return };
        let (due, is_last) = {
            let mut noted = shared.new_holds.0.lock();
            let now = Instant::now();
            let is_due = |hold: &&NewHold| hold.since + MIN_HOLD_TO_WATCH <= now;
            let many = noted.holds.iter().take_while(is_due).count();
            let due: Vec<_> = noted.holds.drain(..many).collect();
            noted.has_task = !noted.holds.is_empty();
            (due, !noted.has_task)
        };
        for hold in due {
            watch(&shared, hold);
        }
        if is_last {
            return;
        }
    }
}

fn watch<E: LockRecipe>(shared: &Arc<Shared<E>>, hold: NewHold) {
    let token = hold.claim.token();
    {
        let mut claims = shared.claims();
        let record = claims.get(token).filter(|record| record.phase == Phase::Holding);
        if record.is_none_or(|record| record.task.is_some()) {
            return;
        }
    }
    if let Ok(task) = shared.spawn(notify_when_contended(shared.clone(), hold))
        && let Some(record) =
            shared.claims().get(token).filter(|record| record.phase == Phase::Holding)
    {
        record.task = Some(task);
    }
}

async fn notify_when_contended<E: LockRecipe>(shared: Arc<Shared<E>>, hold: NewHold) {
    let NewHold { claim, seen, .. } = hold;
    if let Ok(permit) = shared.admit(Purpose::Acquire, 1).await {
        shared.recipe.wait_until_grown(claim.key(), &seen, permit).await;
    }
    if let Some(subscriber) = shared.subscriber(&claim) {
        subscriber.contended(claim.key().name());
    }
}
