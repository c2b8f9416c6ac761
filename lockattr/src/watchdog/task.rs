//! The watchdog's task: takes what is due out of the queue, and sends it.

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
use super::unparker::Unparker;

/// How long the task sleeps when nothing is due, before it sleeps without a limit. A lease with a
/// later timer does not wake the task, and usually is released before.
const SHORT_SLEEP: Duration = Duration::from_secs(1);

/// The running task. Its end is recorded, whatever the cause.
pub(super) struct Runner {
    watchdog: Arc<Watchdog>,
    runtime: runtime::Id,
    wake: Arc<Notify>,
    /// Wakes the runtime when the task is overdue.
    unparker: Option<Unparker>,
    /// Whether it runs on the thread of the last resort, after which no other can take over.
    last_resort: bool,
}

impl Runner {
    /// Starts the task on `runtime`, which is the current one, unless it runs there; an error if
    /// that runtime lacks what it needs.
    pub(super) fn start(watchdog: &Arc<Watchdog>, runtime: &Handle) -> Result<(), &'static str> {
        if watchdog.is_driven_by(runtime.id()) {
            return Ok(());
        }
        // Checked once for each runtime.
        check_runtime(&watchdog.store)?;
        if let Some(mut runner) = Self::enter(watchdog, runtime.id()) {
            runner.unparker = Unparker::start(runtime);
            runtime.spawn(runner.run());
        }
        Ok(())
    }

    /// Registers a task on `runtime`, unless there is one. Called before the task is spawned, so
    /// that a runtime that drops it unpolled is noticed too.
    pub(super) fn enter(watchdog: &Arc<Watchdog>, runtime: runtime::Id) -> Option<Self> {
        let wake = watchdog.queue().enter(runtime)?;
        let watchdog = watchdog.clone();
        Some(Self { watchdog, runtime, wake, unparker: None, last_resort: false })
    }

    pub(super) fn of_last_resort(mut self) -> Self {
        self.last_resort = true;
        self
    }

    pub(super) async fn run(self) {
        let watchdog = self.watchdog.clone();
        let mut work = pin!(self.work());
        // In a fork, requests in flight and due work belong to the parent.
        let work = poll_fn(|context| match watchdog.is_of_this_process() {
            true => work.as_mut().poll(context),
            false => Poll::Pending,
        });
        work.await;
    }

    async fn work(self) {
        let mut under_way = FuturesUnordered::<UnderWay>::new();
        let mut has_rested = false;
        loop {
            let rest = (!has_rested).then_some(SHORT_SLEEP);
            let due = self.watchdog.due(self.runtime, rest);
            has_rested = false;
            // Outside the queue's mutex: a woken task may lock it.
            due.over.iter().for_each(|hold| self.watchdog.end(hold));
            self.watchdog.telemetry.sum_up(Instant::now());
            due.rechecks.iter().for_each(|name| self.watchdog.recheck(name));
            under_way.extend(due.adopted);
            if !due.renewals.is_empty() {
                // Otherwise, the lease of a lock that its waiter never picks up would be renewed
                // without end.
                self.watchdog.queues.reclaim_unclaimed();
                under_way.push(send_renewals(self.watchdog.clone(), due.renewals));
            }
            if !due.releases.is_empty() {
                under_way.push(send_releases(self.watchdog.clone(), due.releases));
            }
            if under_way.is_empty() && self.watchdog.leases().leave_if_done(self.runtime) {
                return;
            }
            if let Some(unparker) = &self.unparker {
                unparker.expect_poll_by(due.next);
            }
            let next = due.next.unwrap_or_else(Instant::now);
            // No branch waits for another, so a store that hangs delays no deadline.
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
    pub(super) fn is_driven_by(&self, runtime: runtime::Id) -> bool {
        self.known_runners.on(runtime, || self.queue().is_driven_by(runtime))
    }

    /// Takes out what is due, for the task on `runtime`. Without a timer the task checks again
    /// after `rest`.
    fn due(&self, runtime: runtime::Id, rest: Option<Duration>) -> Due {
        // Set before the check, so that a lease that comes after it wakes the task again.
        self.new_leases.begin_check();
        let mut queue = self.leases();
        let mut due = queue.due(runtime, Instant::now(), rest);
        due.next = due.next.into_iter().chain(self.telemetry.next_summary()).min();
        self.new_leases.set_asleep_until(due.next);
        due
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if !self.watchdog.is_of_this_process() {
            return;
        }
        self.watchdog.telemetry.sum_up_now();
        let unanswered = self.watchdog.queue().leave(self.runtime, &self.wake);
        // Dropping them puts the releases back into the queue.
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
