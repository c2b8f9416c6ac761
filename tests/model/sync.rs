//! What `line.rs` and `gate.rs` are built of, here: each operation is one step that the explorer
//! may put any steps of other tasks before.

pub(crate) mod oneshot;
mod semaphore;

use std::hash::{BuildHasherDefault, DefaultHasher};
use std::ops::Add;
pub(crate) use std::sync::{Arc, MutexGuard, PoisonError};
use std::sync::{LockResult, TryLockError};
use std::time::Duration;

pub(crate) use semaphore::Semaphore;

use crate::schedules::{Object, step_at};

/// The same in each run, or no schedule could be taken again.
pub(crate) type NameHasher = BuildHasherDefault<DefaultHasher>;

/// One part with the lock of the models, and one without.
pub(crate) const SHARDS: usize = 2;

/// A mutex whose sections are single steps: nothing in them lets another task run. So the process that finds
/// it locked has locked it himself, or something inside a section waits; both are mistakes.
#[derive(Debug)]
pub(crate) struct Mutex<T> {
    at: Object,
    value: std::sync::Mutex<T>,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { at: Object::new(), value: std::sync::Mutex::new(value) }
    }

    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        step_at(self.at);
        self.lock_in_the_same_step()
    }

    /// For what goes on inside the section of another mutex.
    fn lock_in_the_same_step(&self) -> LockResult<MutexGuard<'_, T>> {
        match self.value.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Err(poisoned),
            Err(TryLockError::WouldBlock) => panic!("locked again by who has locked it"),
        }
    }
}

/// Time, as each model says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(pub(crate) Duration);

impl Instant {
    pub(crate) fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        Self(self.0 + later)
    }
}
