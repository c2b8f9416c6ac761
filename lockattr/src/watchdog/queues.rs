//! What the watchdog does for the wait queues of its process. It knows neither their guards nor their order.

use tokio::time::Instant;

/// The wait queues of one manager, as its watchdog sees them.
pub(crate) trait Queues: Send + Sync {
    /// Releases the cached lock of this name if its time is over, and admits readers behind a writer that has given up.
    /// When to call this again, if the lock is cached for longer.
    fn recheck(&self, name: &str) -> Option<Instant>;

    /// Hands a lock that a waiter was given and has not picked up to the next waiter.
    fn reclaim_unclaimed(&self);

    /// Releases all cached locks.
    fn release_cached(&self);
}
