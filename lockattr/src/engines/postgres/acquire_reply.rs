//! The reply of `acquire.sql`.

use std::time::Duration;

use crate::FencingToken;
use crate::store::queue::recheck_after;
use crate::store::{AcquireOutcome, holder_of};

/// The columns of the reply.
pub(super) struct AcquireRow<'a> {
    pub(super) counter: Option<i64>,
    pub(super) contended: Option<bool>,
    pub(super) value: Option<&'a [u8]>,
    pub(super) remains: Option<i64>,
    pub(super) ahead: Option<i64>,
    pub(super) clock: Option<i64>,
}

/// The server's clock when it refused a claim, in microseconds.
pub(super) type Clock = Option<u64>;

/// Reads the reply to a claim with this TTL, and the server's clock in it.
pub(super) fn granted(
    row: &AcquireRow<'_>,
    ttl: Duration,
    queued: bool,
) -> Option<(AcquireOutcome, Clock)> {
    let AcquireRow { counter, contended, value, remains, ahead, clock } = *row;
    if let Some(counter) = counter {
        return Some((acquired(counter, contended?)?, None));
    }
    let clock = u64::try_from(clock?).ok();
    let holder = value.zip(remains).map(|(value, remains)| holder_of(value, Some(remains)));
    let queued = queued.then(|| {
        // A millisecond later the lease is certainly over, by either clock.
        let left = remains.and_then(|micros| u64::try_from(micros).ok());
        let left = left.map(|micros| Duration::from_micros(micros) + Duration::from_millis(1));
        let ahead = ahead.and_then(|ahead| u32::try_from(ahead).ok()).unwrap_or(0);
        recheck_after(ttl, ahead, left, Duration::MAX)
    });
    Some((AcquireOutcome::Held { holder: holder.map(Box::new), queued }, clock))
}

/// The outcome of an acquisition with this fencing token.
pub(super) fn acquired(counter: i64, contended: bool) -> Option<AcquireOutcome> {
    let fencing = FencingToken::read(u64::try_from(counter).ok()?)?;
    Some(AcquireOutcome::Acquired { fencing, contended })
}
