//! What `line.rs` and `gate.rs` are built of: by another name, so that a model checker can put its
//! own in place.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Quick, and seeded for each process. The names in a map are those that are locked now, so no process can fill
/// it with names that were chosen to meet.
pub(crate) use foldhash::quality::RandomState as NameHasher;
pub(crate) use tokio::sync::{Semaphore, oneshot};
pub(crate) use tokio::time::Instant;

/// In so many parts lies what callers would meet at.
pub(crate) const SHARDS: usize = 64;
