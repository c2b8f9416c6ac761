//! Timing that all stores with wait queues share: how long an entry lasts, and when a claim asks again.
//! `docs/queue.md` has the whole protocol.

use std::time::Duration;

/// How long a queued claim waits at most before it asks again, in case a notification was lost.
pub(crate) const MAX_RECHECK: Duration = Duration::from_secs(15);

/// How long an entry in a queue lasts after its process last asked. An entry is a lease: a process that was
/// killed, stopped or cut off delays the others for no longer.
///
/// It lasts as long as the lease that the claim asks for, so both cost the same; at least a second, because
/// a busy process asks late; at most [`MAX_RECHECK`].
pub(crate) fn entry_lifetime(ttl: Duration) -> Duration {
    ttl.clamp(MIN_LIFETIME, MAX_RECHECK)
}

/// The shortest lifetime of an entry.
const MIN_LIFETIME: Duration = Duration::from_secs(1);

/// The lease of a claim that is granted its locks by a notification, after its process was `silent` for so
/// long.
///
/// The process may have stopped right after it last asked. Whatever its claims are granted later delays the
/// others by at most one TTL from then.
pub(crate) fn lease_of(ttl: Duration, silent: Duration) -> Duration {
    ttl.min(ttl.max(MIN_LIFETIME).saturating_sub(silent))
}

/// After how long a queued claim asks again without a notification: three times in the lifetime of its
/// entry.
///
/// The head of the queue (`ahead` is 0) also asks when the holder's lease ends (`left`), and after `every`,
/// in case another program freed the lock without notifying. The claims behind it can only be served after
/// those before them, so the interval grows with their place, up to a third of the entry's lifetime.
pub(crate) fn recheck_after(
    ttl: Duration,
    ahead: u32,
    left: Option<Duration>,
    every: Duration,
) -> Duration {
    let left = left.filter(|_| ahead == 0).unwrap_or(MAX_RECHECK);
    (entry_lifetime(ttl) / 3).min(every.saturating_mul(ahead.saturating_add(1))).min(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Red without: either end of the clamp.
    #[test]
    fn an_entry_lasts_as_long_as_its_lease_within_reason() {
        for (ttl, expected) in [(10, 1_000), (1_000, 1_000), (4_000, 4_000), (60_000, 15_000)] {
            assert_eq!(entry_lifetime(MS * ttl), MS * expected, "{ttl} ms");
        }
    }

    /// Red without: what is taken off (`silent`), or the least that an entry lasts.
    #[test]
    fn a_grant_lasts_for_a_ttl_from_the_last_question() {
        for (ttl, silent, expected) in
            [(6_000, 0, 6_000), (6_000, 2_000, 4_000), (60_000, 15_000, 45_000)]
        {
            assert_eq!(
                lease_of(MS * ttl, MS * silent),
                MS * expected,
                "{ttl} ms, silent for {silent} ms"
            );
        }
        for (silent, expected) in [(0, 300), (500, 300), (900, 100), (2_000, 0)] {
            assert_eq!(lease_of(MS * 300, MS * silent), MS * expected, "silent for {silent} ms");
        }
    }

    /// Red without: the number ahead, the time that is left, or the third of what an entry lasts.
    #[test]
    fn the_head_of_a_queue_looks_often_and_the_others_the_more_seldom_the_more_there_are() {
        let ttl = MS * 6_000;
        assert_eq!(recheck_after(ttl, 0, Some(MS * 7), MS * 100), MS * 7);
        assert_eq!(recheck_after(ttl, 0, Some(MS * 700), MS * 100), MS * 100);
        assert_eq!(recheck_after(ttl, 0, None, MS * 100), MS * 100);
        assert_eq!(recheck_after(ttl, 4, Some(MS * 7), MS * 100), MS * 500);
        assert_eq!(recheck_after(ttl, 64, None, MS * 100), MS * 2_000);
        assert_eq!(recheck_after(ttl, u32::MAX, None, Duration::MAX), MS * 2_000);
    }
}
