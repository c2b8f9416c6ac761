//! Keeps the timers of a multi-thread runtime going while one of its threads is blocked.
//!
//! Tokio's timers and sockets are polled by a parked worker. When that worker finds a task and the task blocks the
//! thread, no other worker takes its place before one is unparked
//! ([tokio 4730](https://github.com/tokio-rs/tokio/issues/4730)). So in a process with little else to do, a body that
//! computes after an await would lose its lock, although the other threads are idle. A thread outside of the runtime
//! unparks a worker when the watchdog's task is overdue. While the task is on time, that thread sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread, park, park_timeout};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::Instant;

/// How late the watchdog's task may be. Longer than a busy worker usually takes until its next poll, and short beside a
/// lease.
const GRACE: Duration = Duration::from_millis(50);

/// Nothing is due.
const NEVER: u64 = u64::MAX;

/// The runtime, and with it the task, has ended.
const ENDED: u64 = u64::MAX - 1;

/// The thread that watches one runtime's task.
pub(super) struct Unparker {
    due: Arc<Due>,
    thread: Thread,
}

/// When the task wants to be polled next.
struct Due {
    base: Instant,
    /// In milliseconds after `base`.
    at: AtomicU64,
}

impl Unparker {
    /// Starts the thread, if another worker could take over.
    pub(super) fn start(runtime: &Handle) -> Option<Self> {
        if runtime.runtime_flavor() == RuntimeFlavor::CurrentThread {
            return None;
        }
        let due = Arc::new(Due { base: Instant::now(), at: AtomicU64::new(NEVER) });
        let (watched, runtime) = (due.clone(), runtime.clone());
        let thread = thread::Builder::new().name("lockattr-unpark".into());
        match thread.spawn(move || watched.watch(&runtime)) {
            Ok(started) => Some(Self { due, thread: started.thread().clone() }),
            Err(error) => {
                tracing::warn!(
                    error.message = %error,
                    "no thread could be started to unpark workers: a body that blocks its thread may lose its lock"
                );
                None
            }
        }
    }

    /// The task wants to be polled at `next` at the latest.
    pub(super) fn expect_poll_by(&self, next: Option<Instant>) {
        let next = next.map_or(NEVER, |next| self.due.millis(next));
        // If it is later than before, the thread finds that out when it wakes.
        if self.due.at.swap(next, Ordering::AcqRel) > next {
            self.thread.unpark();
        }
    }
}

impl Drop for Unparker {
    fn drop(&mut self) {
        self.due.at.store(ENDED, Ordering::Release);
        self.thread.unpark();
    }
}

impl Due {
    /// Runs on the thread, until the task has ended.
    fn watch(&self, runtime: &Handle) {
        let mut unparked = None;
        loop {
            let due = match self.at.load(Ordering::Acquire) {
                ENDED => return,
                NEVER => {
                    park();
                    continue;
                }
                at => self.base + Duration::from_millis(at) + GRACE,
            };
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() && unparked.as_ref().is_none_or(tokio::task::JoinHandle::is_finished)
            {
                // A task from outside unparks a worker, which polls timers and sockets once it has nothing to do.
                unparked = Some(runtime.spawn(async {}));
            }
            park_timeout(left.max(GRACE));
        }
    }

    fn millis(&self, at: Instant) -> u64 {
        let after = at.saturating_duration_since(self.base).as_millis();
        u64::try_from(after).map_or(ENDED - 1, |millis| millis.min(ENDED - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tokio::runtime::Builder;

    /// Red without: the thread's end, or the `unpark` in `drop`.
    #[test]
    fn the_thread_ends_with_its_task() {
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let unparker = Unparker::start(runtime.handle()).unwrap();
        let due = Arc::downgrade(&unparker.due);
        unparker.expect_poll_by(Some(Instant::now() + Duration::from_secs(3600)));
        drop(unparker);
        while due.strong_count() > 0 {
            thread::yield_now();
        }
    }

    /// On one thread, nothing could take over.
    #[test]
    fn a_runtime_of_one_thread_has_none() {
        let runtime = Builder::new_current_thread().build().unwrap();
        assert!(Unparker::start(runtime.handle()).is_none());
    }
}
