//! The synchronization primitives of the wait queues and of `hold/gate.rs`, under one name, so that
//! a model checker can replace them.

use std::sync::PoisonError;
pub(crate) use std::sync::{Arc, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// Fast, and seeded for each process. A map contains only the names that are locked now, so no
/// client can fill it with colliding names.
pub(crate) use foldhash::quality::RandomState as NameHasher;
pub(crate) use tokio::sync::{Semaphore, oneshot};
pub(crate) use tokio::time::Instant;

/// The number of shards of data that callers would otherwise contend for.
pub(crate) const SHARDS: usize = 64;

/// A mutex that a panic does not poison. Its sections leave the data consistent at every point at which they may panic,
/// and a panic in one caller must not keep the others from releasing their locks.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

/// The same for one writer or several readers.
#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(std::sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
