//! The watchdog's interface to the wait queues of its process.

use tokio::time::Instant;

pub(crate) trait Queues: Send + Sync {
    /// Releases the cached lock of this name if its time has ended, and admits readers behind a
    /// writer that has given up. Returns when to call this again, if the lock stays cached for
    /// longer.
    fn recheck(&self, name: &str) -> Option<Instant>;

    /// Passes locks that waiters were handed and have not picked up to the next waiters.
    fn reclaim_unclaimed(&self);

    fn release_cached(&self);
}
