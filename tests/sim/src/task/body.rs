//! What a task does under its lock.

use std::time::Duration;

use lockattr::{Error, Lease, LockGuard, LockOptions};
use lockattr_history::Op;
use tokio::time::{Instant, sleep};

use super::Task;
use crate::holding::Holding;
use crate::turn::{Step, Turn};

/// How often a body checks whether it still holds the lock.
const CHECK_INTERVAL: Duration = Duration::from_millis(7);

impl Task {
    pub(super) async fn body(
        &self,
        turn: &Turn,
        holding: &Holding,
        lease: &Lease,
        guard: Option<&LockGuard>,
    ) {
        for step in &turn.steps {
            match *step {
                Step::Work(time) => self.work(time, holding, lease).await,
                Step::Count(time) => self.count(time, turn, holding, lease).await,
                Step::Extend(ttl) => holding.extend(lease, ttl).await,
                Step::Reenter(time) => {
                    let inside = self.reenter(time, turn, holding);
                    match guard {
                        Some(guard) => guard.scope(inside).await,
                        None => inside.await,
                    }
                }
            }
        }
        holding.check(lease);
    }

    async fn work(&self, time: Duration, holding: &Holding, lease: &Lease) {
        let until = Instant::now() + time;
        while holding.check(lease) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            sleep(left.min(CHECK_INTERVAL)).await;
        }
    }

    async fn count(&self, time: Duration, turn: &Turn, holding: &Holding, lease: &Lease) {
        let resources = &self.process.resources;
        let read = |key: &&str| resources.with(key, |resource| resource.read());
        let count: Vec<_> = turn.keys.iter().map(read).collect();
        self.work(time, holding, lease).await;
        if holding.check(lease) {
            for (key, count) in turn.keys.iter().zip(count) {
                let token = lease.fencing_token().get();
                resources.with(key, |resource| resource.write(count + 1, token));
            }
        }
    }

    async fn reenter(&self, time: Duration, turn: &Turn, holding: &Holding) {
        let key = turn.keys[0];
        let options = LockOptions::new().wait(Duration::from_secs(1));
        let options = match turn.mode {
            lockattr_history::Mode::Exclusive => options,
            lockattr_history::Mode::Shared => options.mode(lockattr::Mode::Shared),
            lockattr_history::Mode::Permits(permits) => options.permits(permits),
        };
        let calls = holding.invoke(key, Op::Reenter);
        match self.manager.acquire(key, options).await {
            Ok(inner) => {
                calls.ok(Some(inner.fencing_token().get()));
                let inside = Lease::clone(&inner);
                self.work(time, holding, &inside).await;
                holding.leave(key, inner);
            }
            Err(Error::Lost { .. } | Error::ShutDown { .. }) => calls.fail(),
            Err(error) => self.report(format!("a re-entry returned {error:?}")),
        }
    }
}
