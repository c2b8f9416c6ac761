//! When a store's connection last received an answer.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// The time of the last answer. A request without an answer met a busy server, and no outage, if the connection
/// has received other answers since.
#[derive(Debug)]
pub(crate) struct LastAnswer {
    made: Instant,
    /// In microseconds after `made`.
    last: AtomicU64,
}

impl LastAnswer {
    pub(crate) fn new() -> Self {
        Self { made: Instant::now(), last: AtomicU64::new(0) }
    }

    pub(crate) fn now(&self) {
        self.last.store(self.age(Instant::now()), Ordering::Relaxed);
    }

    pub(crate) fn since(&self, since: Instant) -> bool {
        self.last.load(Ordering::Relaxed) > self.age(since)
    }

    fn age(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.made).as_micros()).unwrap_or(u64::MAX)
    }
}
