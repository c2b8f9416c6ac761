//! Does the watchdog's work in time while a thread of a multi-thread runtime is blocked.
//!
//! Tokio's timers and sockets are polled by a parked worker. When that worker finds a task and the task blocks the
//! thread, no other worker takes its place before one is unparked
//! ([tokio 4730](https://github.com/tokio-rs/tokio/issues/4730)). Also, a task that the blocked one has woken last waits
//! for that thread, and no other takes it over. So in a process with little else to do, a body that computes after an
//! await would lose its lock, although the other threads are idle. A thread outside of the runtime notices that the
//! watchdog's task is overdue: that it was woken, or that a timer has passed, and it was not polled. The thread spawns
//! another task, which unparks a worker and does what is due.

use std::io;
use std::sync::{Arc, Condvar, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::Watchdog;
use crate::platform::sync::{Mutex, MutexGuard};

/// How late the watchdog's task may be. Longer than a busy worker usually takes until its next poll, and short beside a
/// lease.
const GRACE: Duration = Duration::from_millis(50);

/// The longest pause before the next attempt while no worker is free.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// How long the thread waits for more work before it ends.
const IDLE_BEFORE_EXIT: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 10 });

/// Watches the task of one runtime. The thread exists while something is due.
pub(super) struct Unparker {
    shared: Arc<Shared>,
    watchdog: Weak<Watchdog>,
    runtime: Handle,
}

/// What the thread shares with the task, and with those who wake it.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By when the task is to be polled, if anything is due.
    due: Option<Instant>,
    /// When the thread looks next, if there is a thread.
    looks_at: Option<Instant>,
    /// The task has ended, and its runtime may have.
    has_ended: bool,
    /// Why the system refused the thread, until the task has told.
    start_error: Option<io::Error>,
    /// Whether it has refused before, which is logged once.
    was_refused: bool,
}

impl Unparker {
    /// Watches the task on this runtime, unless that has no other worker that could take over.
    pub(super) fn new(runtime: &Handle, watchdog: &Arc<Watchdog>) -> Option<Self> {
        (runtime.metrics().num_workers() > 1).then(|| Self {
            shared: Arc::default(),
            watchdog: Arc::downgrade(watchdog),
            runtime: runtime.clone(),
        })
    }

    /// The task, or another in its place, begins to do what is due.
    pub(super) fn polled(&self) {
        self.shared.state.lock().due = None;
    }

    /// The task is to be polled by this time.
    pub(super) fn expect_poll_by(&self, at: Instant) {
        let mut state = self.shared.state.lock();
        if state.has_ended || state.due.is_some_and(|due| due <= at) {
            return;
        }
        state.due = Some(at);
        let overdue = at + GRACE;
        match state.looks_at {
            // The thread finds out by itself.
            Some(looks_at) if looks_at <= overdue => return,
            Some(_) => self.shared.changed.notify_one(),
            None => {
                if let Err(error) = self.start_thread() {
                    if !std::mem::replace(&mut state.was_refused, true) {
                        state.start_error = Some(error);
                    }
                    // The next call tries again.
                    state.due = None;
                    return;
                }
            }
        }
        state.looks_at = Some(overdue);
    }

    /// Returns once why no thread could be started.
    pub(super) fn start_error(&self) -> Option<io::Error> {
        self.shared.state.lock().start_error.take()
    }

    fn start_thread(&self) -> io::Result<()> {
        let (shared, watchdog, runtime) =
            (self.shared.clone(), self.watchdog.clone(), self.runtime.clone());
        let thread = thread::Builder::new().name("lockattr-unpark".into());
        thread.spawn(move || shared.watch(&watchdog, &runtime)).map(drop)
    }

    /// The task has ended.
    pub(super) fn end(&self) {
        self.shared.state.lock().has_ended = true;
        self.shared.changed.notify_one();
    }
}

impl Shared {
    /// Runs on the thread.
    fn watch(&self, watchdog: &Weak<Watchdog>, runtime: &Handle) {
        let mut pause = GRACE;
        let mut state = self.state.lock();
        while !state.has_ended {
            let now = Instant::now();
            let Some(due) = state.due else {
                let until = now + IDLE_BEFORE_EXIT;
                state = self.wait(state, until);
                if state.due.is_none() && until <= Instant::now() {
                    state.looks_at = None;
                    return;
                }
                continue;
            };
            let overdue = due + GRACE;
            if now < overdue {
                state = self.wait(state, overdue);
                continue;
            }
            let Some(watchdog) = watchdog.upgrade() else { return };
            drop(state);
            runtime.spawn(watchdog.stand_in(runtime.id()));
            state = self.state.lock();
            if state.due == Some(due) {
                state = self.wait(state, now + pause);
            }
            // Until a worker is free.
            pause = if state.due == Some(due) { (pause * 2).min(MAX_PAUSE) } else { GRACE };
        }
    }

    /// Waits until this time, or until an earlier one by which something is overdue.
    fn wait<'a>(&self, mut state: MutexGuard<'a, State>, until: Instant) -> MutexGuard<'a, State> {
        state.looks_at = Some(until);
        while !state.has_ended {
            let looks_at = state.looks_at.unwrap_or(until);
            let left = looks_at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tokio::runtime::{Builder, Runtime};

    const HOUR: Duration = Duration::from_secs(3600);

    fn threads(workers: usize) -> Runtime {
        Builder::new_multi_thread().worker_threads(workers).build().unwrap()
    }

    fn unparker(runtime: &Runtime) -> Option<Unparker> {
        Unparker::new(runtime.handle(), &super::super::tests::watchdog())
    }

    /// Waits until the thread has dropped its share, and so has ended.
    fn until_ended(shared: &Weak<Shared>, left: usize) {
        while shared.strong_count() > left {
            thread::yield_now();
        }
    }

    /// Red without: the thread's end, or the message in `end`.
    #[test]
    fn the_thread_ends_with_its_task() {
        let runtime = threads(2);
        let unparker = unparker(&runtime).unwrap();
        let shared = Arc::downgrade(&unparker.shared);
        unparker.expect_poll_by(Instant::now() + HOUR);
        assert_eq!(shared.strong_count(), 2);
        unparker.end();
        until_ended(&shared, 1);
        unparker.expect_poll_by(Instant::now());
        assert_eq!(shared.strong_count(), 1, "no thread watches a task that has ended");
    }

    /// Red without: the thread's end, after which the next timer starts another.
    #[test]
    fn there_is_a_thread_only_while_something_is_due() {
        let runtime = threads(2);
        let unparker = unparker(&runtime).unwrap();
        let shared = Arc::downgrade(&unparker.shared);
        assert_eq!(shared.strong_count(), 1);
        for _ in 0..2 {
            unparker.expect_poll_by(Instant::now() + HOUR);
            assert_eq!(shared.strong_count(), 2);
            unparker.polled();
            // Stands for the end of the hour.
            unparker.shared.state.lock().looks_at = Some(Instant::now());
            unparker.shared.changed.notify_one();
            until_ended(&shared, 1);
        }
    }

    /// No other worker could take over.
    #[test]
    fn a_runtime_with_one_worker_has_none() {
        assert!(unparker(&threads(1)).is_none());
        assert!(unparker(&Builder::new_current_thread().build().unwrap()).is_none());
    }
}
