//! The synchronization primitives of the wait queues and of `hold/gate.rs`, under one name, so that
//! a model checker can replace them.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Fast, and seeded for each process. A map contains only the names that are locked now, so no
/// client can fill it with colliding names.
pub(crate) use foldhash::quality::RandomState as NameHasher;
pub(crate) use tokio::sync::{Semaphore, oneshot};
pub(crate) use tokio::time::Instant;

/// The number of shards of data that callers would otherwise contend for.
pub(crate) const SHARDS: usize = 64;
