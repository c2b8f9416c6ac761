//! Local wait queues: order, hand-off inside a process, and what keeps a lock beyond its holder.

mod at_least;
mod bounds;
mod handoff;
mod histories;
mod keys;
mod linger;
mod loss;
mod permits;
mod readers;
mod readers_share;
mod sharing;
mod waiters;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockattr::{Error, LockGuard, LockManager, LockManagerBuilder, LockOptions};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::support::Scripted;
use lockattr_tests::in_time;

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// A manager that stands for another process, over the same store.
fn on(store: &Arc<Scripted>) -> LockManagerBuilder {
    LockManager::builder().store(store.clone())
}

fn long_wait() -> LockOptions {
    LockOptions::new().wait(3600 * SECOND)
}

/// Asks for the lock `a` in a new task, and returns once that task waits.
async fn spawn_acquire(manager: &LockManager, options: LockOptions) -> PendingAcquire {
    let manager = manager.clone();
    let pending = tokio::spawn(async move {
        let outcome = manager.acquire("a", options).await;
        (outcome, Instant::now())
    });
    settle().await;
    pending
}

/// Returns the guard of `pending`, and when it was acquired. It must not depend on a last attempt at
/// the end of the wait budget.
async fn acquired_by(pending: PendingAcquire) -> (LockGuard, Instant) {
    let outcome = in_time(pending).await;
    let (guard, at) = outcome.unwrap();
    (guard.unwrap(), at)
}

type PendingAcquire = JoinHandle<(Result<LockGuard, Error>, Instant)>;

/// On a paused clock: lets every task run until it is idle.
async fn settle() {
    sleep(MS).await;
}

/// The names of the holders, in the order in which they acquired the lock.
#[derive(Clone, Default)]
struct Order(Arc<Mutex<Vec<String>>>);

impl Order {
    /// Holds the lock `a` for `time` in a new task, and returns once that task waits.
    async fn spawn_holder(&self, manager: &LockManager, name: &str, time: Duration) {
        let (order, manager, name) = (self.clone(), manager.clone(), name.to_owned());
        tokio::spawn(async move {
            let guard = manager.acquire("a", long_wait()).await.unwrap();
            order.0.lock().unwrap().push(name);
            sleep(time).await;
            guard.release().await.unwrap();
        });
        settle().await;
    }

    fn names(&self) -> String {
        self.0.lock().unwrap().concat()
    }
}
