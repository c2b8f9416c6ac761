//! Locks that were recently contended.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, Ordering};

use foldhash::fast::FixedState;
use tokio::time::Instant;

/// The number of entries in the table. A power of two.
const BUCKETS: usize = 1024;

/// Not seeded: a client that finds colliding names makes only its own locks slower.
const HASHER: FixedState = FixedState::with_seed(0);

/// How many milliseconds a lock counts as contended after a waiter was seen. Each of these costs at
/// most one plain command in vain. But a lock that was contended once, as after a server has
/// stalled, takes the slower way for all of them.
const REMEMBERED_MILLIS: u32 = 300;

/// Which locks are contended, as far as this process knows. Acquisitions and releases of these use
/// scripts and functions at once, because plain commands would fail and cost one more round trip. Only a
/// hint: locks may share an entry, and only speed depends on it.
pub(in crate::engines) struct Contended {
    created: Instant,
    /// For each entry, until when its locks count as contended, in milliseconds after `created`.
    until: Box<[AtomicU32]>,
}

impl Contended {
    pub(in crate::engines) fn new() -> Self {
        let until = (0..BUCKETS).map(|_| AtomicU32::new(0)).collect();
        Self { created: Instant::now(), until }
    }

    /// Records that a process waits for this lock.
    pub(in crate::engines) fn note(&self, lock: &str) {
        let until = self.age(Instant::now()).saturating_add(REMEMBERED_MILLIS);
        self.bucket(lock).store(until, Ordering::Relaxed);
    }

    /// Returns whether a waiter for it was seen a short time before `now`.
    pub(in crate::engines) fn contains(&self, lock: &str, now: Instant) -> bool {
        self.bucket(lock).load(Ordering::Relaxed) > self.age(now)
    }

    fn age(&self, now: Instant) -> u32 {
        let age = now.saturating_duration_since(self.created).as_millis();
        // Wraps after 49 days, which only costs speed.
        (age % u128::from(u32::MAX)) as u32
    }

    fn bucket(&self, lock: &str) -> &AtomicU32 {
        // The remainder is smaller than the table.
        &self.until[(HASHER.hash_one(lock) % BUCKETS as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_contended_lock_is_remembered_for_a_moment() {
        let contended = Contended::new();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!contended.contains("a", Instant::now()));
        contended.note("a");
        assert!(contended.contains("a", Instant::now() + Duration::from_millis(299)));
        assert!(!contended.contains("a", Instant::now() + Duration::from_millis(300)));
        let others =
            (0..100).filter(|n| contended.contains(&n.to_string(), Instant::now())).count();
        assert!(others <= 1, "{others} of 100");
    }
}
