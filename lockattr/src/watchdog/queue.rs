//! The watchdog's work, and the tasks that drive it. No I/O, and no clock of its own.
//!
//! The mutex of this queue guards everything that decides whether a task is needed. So no work is
//! added between a task's last check and its end.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime;
use tokio::time::Instant;

use super::batch::UnderWay;
use super::last_resort::LastResort;
use super::leases::Leases;
use super::recheck_timers::RecheckTimers;
use super::releases::{PendingRelease, Releases};
use super::wake::Wake;
use crate::lease::LeaseState;
use crate::store::RenewRequest;

/// The shortest pause before an unanswered renewal or release is tried again.
pub(super) const MIN_RETRY_PAUSE: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(super) struct Queue {
    pub(super) leases: Leases,
    pub(super) releases: Releases,
    pub(super) recheck_timers: RecheckTimers,
    /// The tasks that drive this queue, one on each runtime that uses the manager. If one is
    /// blocked or gone, another does its work.
    runners: HashMap<runtime::Id, Arc<Wake>>,
    /// How many tasks have ended; threads compare it with what they remember.
    pub(super) left: Arc<AtomicU64>,
    /// Until when the tasks sleep. Only an earlier timer has to wake them.
    asleep_until: Option<Instant>,
    /// The thread that sends releases if no task does.
    pub(super) last_resort: Option<LastResort>,
    /// Nothing can be acquired any more: the tasks end when no work is left.
    pub(super) closing: bool,
}

pub(super) struct Due {
    pub(super) renewals: Vec<(u64, RenewRequest)>,
    /// Holds whose deadline has passed, to be signalled.
    pub(super) over: Vec<Arc<LeaseState>>,
    pub(super) releases: Vec<PendingRelease>,
    pub(super) adopted: Vec<UnderWay>,
    /// Locks to check: their time in the cache may have ended, or their readers may have to share
    /// them.
    pub(super) rechecks: Vec<Arc<str>>,
    /// When the task has to check again.
    pub(super) next: Option<Instant>,
}

impl Queue {
    pub(super) fn hand_off(&mut self, id: u64, hold: &Arc<LeaseState>, now: Instant) {
        if self.leases.hand_off(id, hold, now) {
            self.wake();
        }
    }

    /// Schedules a check of this lock for `at` at the latest; `false` if the manager is closing.
    pub(super) fn recheck_at(&mut self, name: &str, at: Instant) -> bool {
        if self.closing {
            return false;
        }
        self.recheck_timers.recheck_at(name, at);
        if self.asleep_until.is_none_or(|asleep_until| at < asleep_until) {
            self.wake();
        }
        true
    }

    pub(super) fn release(&mut self, release: PendingRelease, now: Instant) {
        self.releases.add(release, now);
        self.wake();
    }

    pub(super) fn put_back(&mut self, release: PendingRelease, now: Instant) {
        self.releases.put_back(release, now);
        self.wake();
    }

    /// Schedules an unanswered release again. Returns it if its lease has ended by then.
    pub(super) fn release_again(
        &mut self,
        release: PendingRelease,
        now: Instant,
    ) -> Option<PendingRelease> {
        let given_up = self.releases.retry(release, now);
        self.wake();
        given_up
    }

    /// Passes a release that its caller has sent on `runtime` to the task there; returns it if
    /// there is no such task.
    pub(super) fn adopt(&mut self, runtime: runtime::Id, under_way: UnderWay) -> Option<UnderWay> {
        let Some(runner) = self.runners.get(&runtime) else { return Some(under_way) };
        self.releases.adopt(runtime, under_way);
        runner.wake();
        None
    }

    /// Takes out what is due, for the task on `runtime`. Without a timer the task checks again
    /// after `rest`.
    pub(super) fn due(
        &mut self,
        runtime: runtime::Id,
        now: Instant,
        rest: Option<Duration>,
    ) -> Due {
        let adopted = self.releases.adopted_on(runtime);
        let (renewals, over) = self.leases.due(now);
        let releases = self.releases.due(now);
        let rechecks = self.recheck_timers.due(now);
        let timers = [self.leases.next(), self.releases.next(), self.recheck_timers.next()];
        let next = timers.into_iter().flatten().min().or_else(|| rest.map(|rest| now + rest));
        self.asleep_until = next;
        Due { renewals, over, releases, adopted, rechecks, next }
    }

    /// Whether releases are pending that no task will send, except possibly that of the last
    /// resort.
    pub(super) fn needs_last_resort(&self) -> bool {
        let last_resort = self.last_resort.as_ref().and_then(|thread| thread.runtime);
        let driven = self.runners.keys().any(|runtime| Some(*runtime) != last_resort);
        !self.releases.all_settled() && !driven
    }

    /// Makes all releases due, whatever their time: it may be by the clock of a runtime that has
    /// ended.
    pub(super) fn retry_now(&mut self) {
        self.releases.retry_now();
        self.wake();
    }

    pub(super) fn is_driven_by(&self, runtime: runtime::Id) -> bool {
        self.runners.contains_key(&runtime)
    }

    /// Whether there is a task on `runtime`, and on no other.
    pub(super) fn is_driven_by_only(&self, runtime: runtime::Id) -> bool {
        self.runners.len() == 1 && self.is_driven_by(runtime)
    }

    /// Registers the task on `runtime` that `wake` wakes, unless there is one. Returns whether it did.
    pub(super) fn enter(&mut self, runtime: runtime::Id, wake: &Arc<Wake>) -> bool {
        let enters = !self.is_driven_by(runtime);
        if enters {
            self.runners.insert(runtime, wake.clone());
        }
        enters
    }

    /// Returns what wakes the task on `runtime`.
    pub(super) fn wake_on(&self, runtime: runtime::Id) -> Option<Arc<Wake>> {
        self.runners.get(&runtime).cloned()
    }

    /// Removes the task on `runtime` if no work is left; returns whether it did.
    pub(super) fn leave_if_done(&mut self, runtime: runtime::Id) -> bool {
        let leaves = self.closing && self.leases.next().is_none() && self.releases.all_settled();
        if leaves {
            self.remove(runtime);
        }
        leaves
    }

    /// Removes the task on `runtime` that `wake` woke, which has ended. Returns the releases sent there, whose answers it
    /// will not receive.
    pub(super) fn leave(&mut self, runtime: runtime::Id, wake: &Arc<Wake>) -> Vec<UnderWay> {
        // A task that was done has already left, and may have a successor.
        if self.runners.get(&runtime).is_some_and(|other| !Arc::ptr_eq(other, wake)) {
            return Vec::new();
        }
        self.remove(runtime);
        // Another task may be asleep because this one was awake.
        self.wake();
        self.releases.adopted_on(runtime)
    }

    pub(super) fn is_driven_by_none(&self) -> bool {
        self.runners.is_empty()
    }

    /// Removes the task on `runtime`, and the last resort if that is its thread's runtime.
    pub(super) fn remove(&mut self, runtime: runtime::Id) {
        if let Some(wake) = self.runners.remove(&runtime) {
            wake.end();
        }
        self.left.fetch_add(1, Ordering::SeqCst);
        self.last_resort.take_if(|thread| thread.runtime == Some(runtime));
    }

    pub(super) fn wake(&self) {
        self.runners.values().for_each(|runner| runner.wake());
    }
}

#[cfg(test)]
mod tests;
