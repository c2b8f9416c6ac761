//! What the watchdog has to see to, and who drives it. No I/O, and no clock of its own.
//!
//! Everything that decides whether a task is needed stands behind one mutex, this queue's, so that
//! no work is put down between a task's last look and its end.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::batch::UnderWay;
use super::last_resort::LastResort;
use super::leases::Leases;
use super::recheck_timers::RecheckTimers;
use super::releases::{PendingRelease, Releases};
use crate::lease::LeaseState;
use crate::store::RenewRequest;

/// Shortest pause before a renewal or a release that got no answer is tried again.
pub(super) const MIN_RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Everything the watchdog has to see to.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) leases: Leases,
    pub(super) releases: Releases,
    pub(super) recheck_timers: RecheckTimers,
    /// The tasks that drive this queue, one on each runtime that uses the manager: where one is
    /// blocked or gone, another goes on.
    runners: HashMap<runtime::Id, Arc<Notify>>,
    /// How many of them have left, so that a thread may remember that there is one.
    pub(super) left: Arc<AtomicU64>,
    /// Until when they sleep, so that only an earlier timer has to wake them.
    asleep_until: Option<Instant>,
    /// What sends releases where no task does.
    pub(super) last_resort: Option<LastResort>,
    /// No caller can acquire any more: the tasks end when there is nothing left to do.
    pub(super) closing: bool,
}

/// What is due now.
pub(super) struct Due {
    pub(super) renewals: Vec<(u64, RenewRequest)>,
    /// Holds whose deadline has passed, to be signalled.
    pub(super) over: Vec<Arc<LeaseState>>,
    pub(super) releases: Vec<PendingRelease>,
    pub(super) adopted: Vec<UnderWay>,
    /// Locks to look at: they may have been kept long enough, or their readers may have to share them.
    pub(super) rechecks: Vec<Arc<str>>,
    /// When the next thing is due.
    pub(super) next: Option<Instant>,
}

impl Queue {
    /// Watches the next hold of a lease in place of the last one.
    pub(super) fn hand_off(&mut self, id: u64, hold: &Arc<LeaseState>, now: Instant) {
        if self.leases.hand_off(id, hold, now) {
            self.wake();
        }
    }

    /// Looks at this lock at `at` at the latest; `false` if the manager closes and no caller will look.
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

    /// Gives a lock back.
    pub(super) fn release(&mut self, release: PendingRelease, now: Instant) {
        self.releases.add(release, now);
        self.wake();
    }

    /// Takes a release again that is owed still.
    pub(super) fn put_back(&mut self, release: PendingRelease, now: Instant) {
        self.releases.put_back(release, now);
        self.wake();
    }

    /// Gives a lock back once more after no answer, unless its lease has ended by then: such a release is
    /// returned.
    pub(super) fn release_again(
        &mut self,
        release: PendingRelease,
        now: Instant,
    ) -> Option<PendingRelease> {
        let given_up = self.releases.again(release, now);
        self.wake();
        given_up
    }

    /// Lets the task on `runtime` see a release through that its caller has sent there; gives it
    /// back if there is no such task.
    pub(super) fn adopt(&mut self, runtime: runtime::Id, under_way: UnderWay) -> Option<UnderWay> {
        let Some(runner) = self.runners.get(&runtime) else { return Some(under_way) };
        self.releases.adopt(runtime, under_way);
        runner.notify_one();
        None
    }

    /// Takes out what is due, for the task on `runtime`, which is to look again after `rest` if nothing is.
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

    /// Whether there are releases that no task sees to, but for the thread of the last resort.
    pub(super) fn needs_last_resort(&self) -> bool {
        let last_resort = self.last_resort.as_ref().and_then(|thread| thread.runtime);
        let driven = self.runners.keys().any(|runtime| Some(*runtime) != last_resort);
        !self.releases.all_settled() && !driven
    }

    /// Makes all releases due, whatever their time: it may be that of a clock that has ended with
    /// its runtime.
    pub(super) fn retry_now(&mut self) {
        self.releases.retry_now();
        self.wake();
    }

    /// Whether there is a task on `runtime`.
    pub(super) fn is_driven_by(&self, runtime: runtime::Id) -> bool {
        self.runners.contains_key(&runtime)
    }

    /// Whether there is a task on `runtime`, and on no other.
    pub(super) fn is_driven_by_only(&self, runtime: runtime::Id) -> bool {
        self.runners.len() == 1 && self.is_driven_by(runtime)
    }

    /// Notes a task on `runtime`, unless there is one; what wakes it.
    pub(super) fn enter(&mut self, runtime: runtime::Id) -> Option<Arc<Notify>> {
        if self.is_driven_by(runtime) {
            return None;
        }
        let wake = Arc::<Notify>::default();
        self.runners.insert(runtime, wake.clone());
        Some(wake)
    }

    /// Lets the task on `runtime` end if there is nothing left to do for it.
    pub(super) fn leave_if_done(&mut self, runtime: runtime::Id) -> bool {
        let leaves = self.closing && self.leases.next().is_none() && self.releases.all_settled();
        if leaves {
            self.remove(runtime);
        }
        leaves
    }

    /// The task on `runtime` that `wake` woke is gone; what was sent there and will not be answered.
    pub(super) fn leave(&mut self, runtime: runtime::Id, wake: &Arc<Notify>) -> Vec<UnderWay> {
        // One that was done left before, and may have a successor.
        if self.runners.get(&runtime).is_some_and(|other| !Arc::ptr_eq(other, wake)) {
            return Vec::new();
        }
        self.remove(runtime);
        // Another may have slept because this one was awake.
        self.wake();
        self.releases.adopted_on(runtime)
    }

    /// Whether no task is left.
    pub(super) fn is_driven_by_none(&self) -> bool {
        self.runners.is_empty()
    }

    /// Takes the task on `runtime` off, and with it the thread if it is that one's.
    pub(super) fn remove(&mut self, runtime: runtime::Id) {
        self.runners.remove(&runtime);
        self.left.fetch_add(1, Ordering::SeqCst);
        self.last_resort.take_if(|thread| thread.runtime == Some(runtime));
    }

    pub(super) fn wake(&self) {
        self.runners.values().for_each(|runner| runner.notify_one());
    }
}

#[cfg(test)]
mod tests;
