//! When a store's connection last received a reply.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// The time of the last reply. If the connection has received other replies since a request was sent, the
/// server that did not reply to that request is busy, not down.
#[derive(Debug)]
pub(crate) struct LastReply {
    created: Instant,
    /// In microseconds after `created`.
    last: AtomicU64,
}

impl LastReply {
    pub(crate) fn new() -> Self {
        Self { created: Instant::now(), last: AtomicU64::new(0) }
    }

    pub(crate) fn record(&self) {
        self.last.store(self.age(Instant::now()), Ordering::Relaxed);
    }

    /// When the last reply came, if that was after `since`.
    pub(crate) fn after(&self, since: Instant) -> Option<Instant> {
        let last = self.last.load(Ordering::Relaxed);
        (last > self.age(since)).then(|| self.created + std::time::Duration::from_micros(last))
    }

    fn age(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.created).as_micros()).unwrap_or(u64::MAX)
    }
}
