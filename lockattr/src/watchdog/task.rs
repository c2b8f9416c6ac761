//! The watchdog's task: takes out of the queue what is due, and sends it.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::runtime::{self, Handle};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::Watchdog;
use super::batch::{UnderWay, send_releases, send_renewals};
use super::queue::Due;
use super::runtime_check::check_runtime;

/// So long the task sleeps when nothing is due, before it sleeps for good. A lease that has to be looked at
/// later than that does not wake it, and is mostly given back before.
const SHORT_SLEEP: Duration = Duration::from_secs(1);

/// The running task; its end, however it comes, is noted.
pub(super) struct Runner {
    watchdog: Arc<Watchdog>,
    runtime: runtime::Id,
    wake: Arc<Notify>,
    /// Whether it is the thread's, after which there is no other to turn to.
    last_resort: bool,
}

impl Runner {
    /// Starts the task on `runtime`, which is the current one, unless it runs there; an error if that
    /// runtime lacks what it needs.
    pub(super) fn start(watchdog: &Arc<Watchdog>, runtime: &Handle) -> Result<(), &'static str> {
        if watchdog.is_driven_by(runtime.id()) {
            return Ok(());
        }
        // Asked once for each runtime.
        check_runtime(&watchdog.store)?;
        if let Some(runner) = Self::enter(watchdog, runtime.id()) {
            runtime.spawn(runner.run());
        }
        Ok(())
    }

    /// Notes a task on `runtime`, unless there is one. Made before the task is spawned, so that a
    /// runtime that drops it unpolled is noticed too.
    pub(super) fn enter(watchdog: &Arc<Watchdog>, runtime: runtime::Id) -> Option<Self> {
        let wake = watchdog.queue().enter(runtime)?;
        Some(Self { watchdog: watchdog.clone(), runtime, wake, last_resort: false })
    }

    pub(super) fn of_last_resort(mut self) -> Self {
        self.last_resort = true;
        self
    }

    pub(super) async fn run(self) {
        let watchdog = self.watchdog.clone();
        let mut works = pin!(self.work());
        // What it has sent is the parent's to hear of, and what is due the parent's to send.
        let works = poll_fn(|context| match watchdog.is_of_this_process() {
            true => works.as_mut().poll(context),
            false => Poll::Pending,
        });
        works.await;
    }

    async fn work(self) {
        let mut under_way = FuturesUnordered::<UnderWay>::new();
        let mut has_rested = false;
        loop {
            let rest = (!has_rested).then_some(SHORT_SLEEP);
            let due = self.watchdog.due(self.runtime, rest);
            has_rested = false;
            // Not while the queue is locked: the caller that is woken may want it.
            due.over.iter().for_each(|hold| hold.signal_end());
            due.rechecks.iter().for_each(|name| self.watchdog.recheck(name));
            under_way.extend(due.adopted);
            if !due.renewals.is_empty() {
                // A lock that was handed to a waiter and is not picked up is not renewed without end.
                self.watchdog.queues.reclaim_unclaimed();
                under_way.push(send_renewals(self.watchdog.clone(), due.renewals));
            }
            if !due.releases.is_empty() {
                under_way.push(send_releases(self.watchdog.clone(), due.releases));
            }
            if under_way.is_empty() && self.watchdog.leases().leave_if_done(self.runtime) {
                return;
            }
            let next = due.next.unwrap_or_else(Instant::now);
            // No branch waits for another: a store that hangs delays no deadline.
            tokio::select! {
                biased;
                Some(()) = under_way.next() => {}
                () = self.wake.notified() => {}
                () = sleep_until(next), if due.next.is_some() => has_rested = true,
            }
        }
    }
}

impl Watchdog {
    /// Whether there is a task on `runtime`.
    pub(super) fn is_driven_by(&self, runtime: runtime::Id) -> bool {
        self.known_runners.on(runtime, || self.queue().is_driven_by(runtime))
    }

    /// Takes out what is due, for the task on `runtime`, which is to look again after `rest` if nothing is.
    fn due(&self, runtime: runtime::Id, rest: Option<Duration>) -> Due {
        // First that, so that a lease which comes behind the look wakes the task again.
        self.new_leases.looks();
        let mut queue = self.leases();
        let due = queue.due(runtime, Instant::now(), rest);
        self.new_leases.sleeps(due.next);
        due
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if !self.watchdog.is_of_this_process() {
            return;
        }
        let unanswered = self.watchdog.queue().leave(self.runtime, &self.wake);
        // They go back into the queue.
        drop(unanswered);
        if self.watchdog.queue().is_driven_by_none() {
            self.watchdog.queues.release_cached();
        }
        self.watchdog.settled();
        if !self.last_resort {
            self.watchdog.start_last_resort();
        }
    }
}
