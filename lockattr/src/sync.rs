//! What `line.rs` and `gate.rs` are built of: by another name, so that a model checker can put its
//! own in place.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use tokio::sync::{Semaphore, oneshot};
pub(crate) use tokio::time::Instant;
