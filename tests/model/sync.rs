//! The primitives of the wait queue and of `gate.rs` for the models: each operation is one step,
//! before which the explorer may schedule any steps of other tasks.

pub(crate) mod oneshot;
mod semaphore;

use std::hash::{BuildHasherDefault, DefaultHasher};
use std::ops::Add;
use std::sync::TryLockError;
pub(crate) use std::sync::{Arc, MutexGuard};
use std::time::Duration;

pub(crate) use semaphore::Semaphore;

use crate::schedules::{Object, step_at};

/// The same in each run, because a schedule must be repeatable.
pub(crate) type NameHasher = BuildHasherDefault<DefaultHasher>;

/// One shard for the lock of the models, and one other.
pub(crate) const SHARDS: usize = 2;

/// A mutex whose sections are single steps: no other task runs inside one. A task that finds it
/// locked has locked it itself, or something waits inside a section; both are mistakes.
#[derive(Debug)]
pub(crate) struct Mutex<T> {
    at: Object,
    value: std::sync::Mutex<T>,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { at: Object::new(), value: std::sync::Mutex::new(value) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        step_at(self.at);
        self.lock_in_the_same_step()
    }

    /// For use inside the section of another mutex.
    fn lock_in_the_same_step(&self) -> MutexGuard<'_, T> {
        match self.value.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => panic!("locked again by the task that holds it"),
        }
    }
}

/// The time, as each model sets it.
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
