//! The bound on a holder's silence: a body that reports no progress for that long loses its lease.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The shortest lease that a renewal asks for near the end of a silence. A store need not accept less.
const SHORTEST: Duration = Duration::from_millis(10);

/// When a holder last reported progress, and how long it may be silent.
#[derive(Debug)]
pub(super) struct Silence {
    within: Duration,
    since: Instant,
    /// The last report, in nanoseconds after `since`; only grows.
    reported: AtomicU64,
}

impl Silence {
    /// A holder whose silence begins now.
    pub(super) fn new(within: Duration, now: Instant) -> Self {
        Self { within, since: now, reported: AtomicU64::new(0) }
    }

    /// Records progress.
    pub(super) fn report(&self, now: Instant) {
        let reported = super::nanos(now.saturating_duration_since(self.since));
        self.reported.fetch_max(reported, Ordering::AcqRel);
    }

    /// When the silence has lasted too long, unless the holder reports before.
    pub(super) fn ends(&self) -> Instant {
        self.since + Duration::from_nanos(self.reported.load(Ordering::Acquire)) + self.within
    }

    /// `ttl`, but not past the end of the silence: the lease then ends in the store at the same time, also
    /// if the thread of the holder is blocked and releases nothing.
    pub(super) fn at_most(&self, ttl: Duration, now: Instant) -> Duration {
        ttl.min(self.ends().saturating_duration_since(now).max(SHORTEST))
    }
}
