//! Does the watchdog's work in time while a thread of a multi-thread runtime is blocked.
//!
//! Tokio's timers and sockets are polled by a parked worker. When that worker finds a task and the task blocks the
//! thread, no other worker takes its place before one is unparked
//! ([tokio 4730](https://github.com/tokio-rs/tokio/issues/4730)). Also, a task that the blocked one has woken last waits
//! for that thread, and no other takes it over. So in a process with little else to do, a body that computes after an
//! await would lose its lock, although the other threads are idle. A thread outside of the runtime notices that the
//! watchdog's task is overdue. It spawns another task, which unparks a worker and does what is due.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, Thread, park_timeout};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::Watchdog;

/// How late the watchdog's task may be. Longer than a busy worker usually takes until its next poll, and short beside a
/// lease.
const GRACE: Duration = Duration::from_millis(50);

/// The longest pause before the next attempt while no worker is free.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// How long the thread waits for more work before it ends.
const IDLE_BEFORE_EXIT: Duration = Duration::from_secs(10);

/// Nothing is due.
const NEVER: u64 = u64::MAX;

/// Nothing is due, and the thread has ended.
const STOPPED: u64 = u64::MAX - 1;

/// The task has ended, and its runtime may have.
const ENDED: u64 = u64::MAX - 2;

/// Watches the task of one runtime. The thread exists while something is due.
pub(super) struct Unparker {
    due: Arc<Due>,
    watchdog: Weak<Watchdog>,
    runtime: Handle,
    thread: Option<Thread>,
}

/// When the task wants to be polled next.
struct Due {
    base: Instant,
    /// In milliseconds after `base`.
    at: AtomicU64,
}

impl Unparker {
    /// For the current runtime, unless it has no other worker that could take over.
    pub(super) fn here(watchdog: &Arc<Watchdog>) -> Option<Self> {
        let runtime = Handle::current();
        (runtime.metrics().num_workers() > 1).then(|| Self {
            due: Arc::new(Due { base: Instant::now(), at: AtomicU64::new(STOPPED) }),
            watchdog: Arc::downgrade(watchdog),
            runtime,
            thread: None,
        })
    }

    /// The task wants to be polled at `next` at the latest.
    pub(super) fn expect_poll_by(&mut self, next: Option<Instant>) {
        let next = next.map_or(NEVER, |next| self.due.millis(next));
        match self.due.at.swap(next, Ordering::AcqRel) {
            STOPPED if next == NEVER => self.due.at.store(STOPPED, Ordering::Release),
            STOPPED => self.thread = self.start_thread(),
            // If it is later than before, the thread finds that out when it wakes.
            before if before > next => self.unpark(),
            _ => {}
        }
    }

    fn start_thread(&self) -> Option<Thread> {
        let (due, watchdog, runtime) =
            (self.due.clone(), self.watchdog.clone(), self.runtime.clone());
        let thread = thread::Builder::new().name("lockattr-unpark".into());
        match thread.spawn(move || due.watch(&watchdog, &runtime)) {
            Ok(started) => Some(started.thread().clone()),
            Err(error) => {
                tracing::warn!(
                    error.message = %error,
                    "no thread could be started to unpark workers: a body that blocks its thread may lose its lock"
                );
                None
            }
        }
    }

    fn unpark(&self) {
        self.thread.iter().for_each(Thread::unpark);
    }
}

impl Drop for Unparker {
    fn drop(&mut self) {
        self.due.at.store(ENDED, Ordering::Release);
        self.unpark();
    }
}

impl Due {
    /// Runs on the thread.
    fn watch(self: &Arc<Self>, watchdog: &Weak<Watchdog>, runtime: &Handle) {
        let (mut tried, mut pause) = (NEVER, GRACE);
        loop {
            let at = self.at.load(Ordering::Acquire);
            if at == ENDED {
                return;
            }
            if at == NEVER {
                park_timeout(IDLE_BEFORE_EXIT);
                let stopped = Ordering::AcqRel;
                if self.at.compare_exchange(NEVER, STOPPED, stopped, Ordering::Relaxed).is_ok() {
                    return;
                }
                continue;
            }
            let overdue = self.base + Duration::from_millis(at) + GRACE;
            let left = overdue.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                park_timeout(left);
                continue;
            }
            pause = if tried == at { (pause * 2).min(MAX_PAUSE) } else { GRACE };
            tried = at;
            let Some(watchdog) = watchdog.upgrade() else { return };
            let due = self.clone();
            runtime.spawn(watchdog.stand_in(runtime.id(), move |next| due.replace(at, next)));
            park_timeout(pause);
        }
    }

    /// Another task has done what was due `at` that time.
    fn replace(&self, at: u64, next: Instant) {
        let next = self.millis(next);
        // Unless the task itself has been polled meanwhile, or has ended.
        self.at.compare_exchange(at, next, Ordering::AcqRel, Ordering::Relaxed).ok();
    }

    fn millis(&self, at: Instant) -> u64 {
        let after = at.saturating_duration_since(self.base).as_millis();
        u64::try_from(after).map_or(ENDED - 1, |millis| millis.min(ENDED - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tokio::runtime::{Builder, Runtime};

    fn threads(workers: usize) -> Runtime {
        Builder::new_multi_thread().worker_threads(workers).build().unwrap()
    }

    fn unparker(runtime: &Runtime) -> Option<Unparker> {
        let _inside = runtime.enter();
        Unparker::here(&super::super::tests::watchdog())
    }

    /// Waits until the thread has dropped its share, and so has ended.
    fn until_ended(due: &Weak<Due>, left: usize) {
        while due.strong_count() > left {
            thread::yield_now();
        }
    }

    /// Red without: the thread's end, or the `unpark` in `drop`.
    #[test]
    fn the_thread_ends_with_its_task() {
        let runtime = threads(2);
        let mut unparker = unparker(&runtime).unwrap();
        let due = Arc::downgrade(&unparker.due);
        unparker.expect_poll_by(Some(Instant::now() + Duration::from_secs(3600)));
        assert_eq!(due.strong_count(), 2);
        drop(unparker);
        until_ended(&due, 0);
    }

    /// Red without: `STOPPED`, after which the next timer starts another thread.
    #[test]
    fn there_is_a_thread_only_while_something_is_due() {
        let runtime = threads(2);
        let mut unparker = unparker(&runtime).unwrap();
        unparker.expect_poll_by(None);
        assert!(unparker.thread.is_none());
        let due = Arc::downgrade(&unparker.due);
        for _ in 0..2 {
            unparker.expect_poll_by(Some(Instant::now() + Duration::from_secs(3600)));
            assert_eq!(due.strong_count(), 2);
            unparker.expect_poll_by(None);
            // Stands for the end of the time that it waits.
            unparker.unpark();
            until_ended(&due, 1);
        }
    }

    /// No other worker could take over.
    #[test]
    fn a_runtime_with_one_worker_has_none() {
        assert!(unparker(&threads(1)).is_none());
        assert!(unparker(&Builder::new_current_thread().build().unwrap()).is_none());
    }
}
