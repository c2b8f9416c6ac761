//! The watchdog's task: takes what is due out of the queue, and sends it.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::runtime::{self, Handle};
use tokio::time::{Instant, sleep_until};

use super::Watchdog;
use super::batch::{UnderWay, send_releases, send_renewals};
use super::queue::Due;
use super::runtime_check::check_runtime;
use super::wake::Wake;

/// How long the task sleeps when nothing is due, before it sleeps without a limit. A lease with a
/// later timer does not wake the task, and usually is released before.
const SHORT_SLEEP: Duration = Duration::from_secs(1);

/// The running task. Its end is recorded, whatever the cause.
pub(super) struct Runner {
    watchdog: Arc<Watchdog>,
    runtime: runtime::Id,
    wake: Arc<Wake>,
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
        if let Some(runner) = Self::enter(watchdog, runtime) {
            runtime.spawn(runner.run());
        }
        Ok(())
    }

    /// Registers a task on `runtime`, unless there is one. Called before the task is spawned, so
    /// that a runtime that drops it unpolled is noticed too.
    pub(super) fn enter(watchdog: &Arc<Watchdog>, runtime: &Handle) -> Option<Self> {
        let (wake, runtime) = (Wake::new(runtime, watchdog), runtime.id());
        let mut queue = watchdog.queue();
        let enters = queue.enter(runtime, &wake);
        if enters {
            // Watched from here on: its thread may be blocked before its first poll, and an earlier task may have slept.
            watchdog.new_leases.begin_check();
            wake.wake();
        }
        drop(queue);
        enters.then(|| Self { watchdog: watchdog.clone(), runtime, wake, last_resort: false })
    }

    pub(super) fn of_last_resort(mut self) -> Self {
        self.last_resort = true;
        self
    }

    pub(super) async fn run(self) {
        let watchdog = self.watchdog.clone();
        watchdog.only_in_this_process(self.work()).await;
    }

    async fn work(self) {
        let mut under_way = FuturesUnordered::<UnderWay>::new();
        let mut has_rested = false;
        loop {
            let rest = (!has_rested).then_some(SHORT_SLEEP);
            let next = self.watchdog.begin_due(self.runtime, rest, &under_way);
            has_rested = false;
            if under_way.is_empty() && self.watchdog.leases().leave_if_done(self.runtime) {
                return;
            }
            let until = next.unwrap_or_else(Instant::now);
            // No branch waits for another, so a store that hangs delays no deadline.
            tokio::select! {
                biased;
                Some(()) = under_way.next() => {}
                () = self.wake.woken() => {}
                () = sleep_until(until), if next.is_some() => has_rested = true,
            }
        }
    }
}

impl Watchdog {
    pub(super) fn is_driven_by(&self, runtime: runtime::Id) -> bool {
        self.known_runners.on(runtime, || self.queue().is_driven_by(runtime))
    }

    /// Does once what is due, in place of the task on `runtime`, which cannot be polled.
    pub(super) async fn stand_in(self: Arc<Self>, runtime: runtime::Id) {
        let stand_in = StandIn(self);
        let work = async {
            let mut under_way = FuturesUnordered::new();
            stand_in.0.begin_due(runtime, None, &under_way);
            while let Some(()) = under_way.next().await {}
        };
        stand_in.0.only_in_this_process(work).await;
    }

    /// Polls `work` only in the process that created the manager. In a fork, requests in flight and due work belong to
    /// the parent.
    async fn only_in_this_process(&self, work: impl Future<Output = ()>) {
        let mut work = pin!(work);
        let work = poll_fn(|context| match self.is_of_this_process() {
            true => work.as_mut().poll(context),
            false => Poll::Pending,
        });
        work.await;
    }

    /// Begins what is due, for the task on `runtime`, and adds what is to be polled to `under_way`. Returns when something
    /// is due again: after `rest`, if no timer is earlier.
    fn begin_due(
        self: &Arc<Self>,
        runtime: runtime::Id,
        rest: Option<Duration>,
        under_way: &FuturesUnordered<UnderWay>,
    ) -> Option<Instant> {
        let due = self.due(runtime, rest);
        // Outside the queue's mutex: a woken task may lock it.
        due.over.iter().for_each(|hold| self.end(hold));
        self.telemetry.sum_up(Instant::now());
        due.rechecks.iter().for_each(|name| self.recheck(name));
        due.adopted.into_iter().for_each(|adopted| under_way.push(adopted));
        if !due.renewals.is_empty() {
            // Otherwise, the lease of a lock that its waiter never picks up would be renewed without end.
            self.queues.reclaim_unclaimed();
            under_way.push(send_renewals(self.clone(), due.renewals));
        }
        if !due.releases.is_empty() {
            under_way.push(send_releases(self.clone(), due.releases));
        }
        due.next
    }

    /// Takes out what is due, for the task on `runtime`, and has it watched until it does the next. Without a timer the
    /// task checks again after `rest`.
    fn due(&self, runtime: runtime::Id, rest: Option<Duration>) -> Due {
        let mut queue = self.queue();
        // Set before the check, so that a lease that comes after it wakes the task again. Under the mutex, because another
        // task may end its own check.
        self.new_leases.begin_check();
        self.move_new_leases(&mut queue);
        let wake = queue.wake_on(runtime);
        wake.iter().for_each(|wake| wake.polled());
        let mut due = queue.due(runtime, Instant::now(), rest);
        due.next = due.next.into_iter().chain(self.telemetry.next_summary()).min();
        self.new_leases.set_asleep_until(due.next);
        drop(queue);
        if let (Some(wake), Some(next)) = (wake, due.next) {
            wake.expect_poll_by(next);
        }
        due
    }
}

/// A task that does the work of a [`Runner`] once.
struct StandIn(Arc<Watchdog>);

impl Drop for StandIn {
    fn drop(&mut self) {
        // If its runtime has ended, its releases are back in the queue, and the runner may have left before.
        if self.0.is_of_this_process() {
            self.0.start_last_resort();
        }
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
