//! Whether and how a claim may wait in the store's queue.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Claim, Waiting};

/// Zero unless the claim may wait in the store's queue. Then twice the TTL in milliseconds; the lowest bit is
/// set if its turn is only told to it.
#[derive(Default)]
pub(super) struct QueuedState(AtomicU64);

impl Claim {
    /// It may wait in the store's queue from now on.
    pub(crate) fn enter_queue(&self, ttl: Duration, waiting: Waiting) {
        let halves = u64::try_from(ttl.as_millis()).map_or(u64::MAX, |ms| ms.saturating_mul(2));
        let notify_only = u64::from(waiting != Waiting::Queued);
        self.queued_as().queued.0.store((halves & !1) | notify_only, Ordering::Release);
    }

    /// Its turn has come: it does not wait in the queue any more. One that is asked to come and take
    /// several locks may do so in another line still.
    pub(crate) fn left_queue(&self) {
        if self.queued.0.load(Ordering::Acquire) & 1 == 0 {
            self.queued.0.store(0, Ordering::Release);
        }
    }

    /// What it asked for, and how it waits, where it may still wait in the queue.
    pub(crate) fn queued(&self) -> Option<(Duration, Waiting)> {
        let halves = self.queued_as().queued.0.load(Ordering::Acquire);
        let notify_only = halves & 1 == 1;
        let waiting = if notify_only { Waiting::Told { again: true } } else { Waiting::Queued };
        (halves > 0).then(|| (Duration::from_millis(halves / 2), waiting))
    }
}
