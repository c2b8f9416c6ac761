//! Caches for each thread whether a runtime has a watchdog task, because otherwise all calls would
//! contend for the queue's mutex.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime;

/// Identifies what a thread remembers.
pub(super) struct KnownRunners {
    /// Identifies the watchdog.
    id: u64,
    /// How many tasks have ended. A change invalidates what threads remember.
    left: Arc<AtomicU64>,
}

/// The watchdog and the runtime that had a task, and how many tasks had ended at that time.
type Memory = (u64, runtime::Id, u64);

thread_local! {
    static LAST: Cell<Option<Memory>> = const { Cell::new(None) };
}

impl KnownRunners {
    pub(super) fn by(left: Arc<AtomicU64>) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Self { id: NEXT_ID.fetch_add(1, Ordering::Relaxed), left }
    }

    /// Whether there is a task on `runtime`, from this thread's memory or from `check`.
    pub(super) fn on(&self, runtime: runtime::Id, check: impl FnOnce() -> bool) -> bool {
        // Read before the check, so that a task that ends after it is noticed the next time.
        let memory = (self.id, runtime, self.left.load(Ordering::SeqCst));
        if LAST.try_with(Cell::get) == Ok(Some(memory)) {
            return true;
        }
        let is_driven = check();
        if is_driven {
            // Fails on a thread that is ending.
            LAST.try_with(|last| last.set(Some(memory))).ok();
        }
        is_driven
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::runtime::{self, Builder, Handle};

    use super::KnownRunners;

    fn some_runtime() -> runtime::Id {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { Handle::current().id() })
    }

    /// Red without: any part of the memory, or the check of `is_driven` before it is stored.
    #[test]
    fn an_answer_is_remembered_for_its_watchdog_and_runtime_until_a_task_leaves() {
        let (here, there, left) = (some_runtime(), some_runtime(), Arc::<AtomicU64>::default());
        let (driven, other) = (KnownRunners::by(left.clone()), KnownRunners::by(left.clone()));
        let unchecked = || -> bool { panic!("it is remembered") };
        assert!(!driven.on(here, || false));
        assert!(driven.on(here, || true));
        assert!(driven.on(here, unchecked));
        assert!(!driven.on(there, || false) && !other.on(here, || false));
        assert!(driven.on(here, unchecked));
        left.fetch_add(1, Ordering::SeqCst);
        assert!(!driven.on(here, || false));
    }
}
