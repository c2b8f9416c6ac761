//! Counts the acquisitions in progress.

use std::sync::atomic::{AtomicIsize, Ordering};

use super::new_leases::shard_index;
use crate::platform::sync::SHARDS;

/// The number of acquisitions in progress, counted in shards so that threads do not contend. An
/// acquisition that ends on another thread than it began on makes one shard's count negative.
pub(super) struct PendingAcquires([Count; SHARDS]);

/// Padded to its own cache line, and to the one that the prefetcher loads with it.
#[repr(align(128))]
#[derive(Default)]
struct Count(AtomicIsize);

impl Default for PendingAcquires {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Count::default()))
    }
}

impl PendingAcquires {
    pub(super) fn begin(&self) {
        self.0[shard_index()].0.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn end(&self) {
        self.0[shard_index()].0.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether no acquisition is in progress. Called after a shutdown: acquisitions that begin then
    /// end at once, on the same thread, so that one shard counts both.
    pub(super) fn none(&self) -> bool {
        self.0.iter().map(|count| count.0.load(Ordering::SeqCst)).sum::<isize>() == 0
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::PendingAcquires;

    /// Red without: the sum over all parts.
    #[test]
    fn it_does_not_matter_which_thread_an_acquisition_ends_on() {
        let pending_acquires = PendingAcquires::default();
        for _ in 0..3 {
            pending_acquires.begin();
        }
        thread::scope(|scope| {
            for _ in 0..3 {
                assert!(!pending_acquires.none());
                scope.spawn(|| pending_acquires.end()).join().unwrap();
            }
        });
        assert!(pending_acquires.none());
    }
}
