//! Which of a few connections is asked about a lock.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::LockKey;

/// The place of this lock among so many, at least one: always the same, so that all commands for it
/// travel on one connection and keep their order.
pub(crate) fn connection_for(key: &LockKey, connections: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    key.name().hash(&mut hasher);
    // The remainder by a `usize` is one.
    (hasher.finish() % connections as u64) as usize
}
