//! What the stores agree on that keep wait queues of their own: how long an entry lasts, and when its
//! process looks again. `docs/queue.md` has the whole protocol.

use std::time::Duration;

/// How long a queued claim waits at most before it asks again: the net under lost messages.
pub(crate) const MAX_RECHECK: Duration = Duration::from_secs(15);

/// How long an entry in a queue lasts after its process asked last. An entry is a lease: a process that
/// was killed, stopped or cut off does not keep the others waiting for longer.
///
/// As long as the lease it asks for, so that both cost the same; never less than a second, because a busy
/// process asks late; never more than [`MAX_RECHECK`].
pub(crate) fn entry_lifetime(ttl: Duration) -> Duration {
    ttl.clamp(LEAST, MAX_RECHECK)
}

/// No entry lasts for less.
const LEAST: Duration = Duration::from_secs(1);

/// For how long a claim gets its locks by a message, when its process was `silent` for so long.
///
/// The process may have stopped right after it asked last. Whatever its claims are granted after that costs
/// the others one TTL from then on, and no more.
pub(crate) fn lease_of(ttl: Duration, silent: Duration) -> Duration {
    ttl.min(ttl.max(LEAST).saturating_sub(silent))
}

/// After how long a queued claim asks again if it hears nothing: three times while its entry lasts.
///
/// The head of the queue (`ahead` is 0) also asks when the lease in its way ends by itself (`left`). A
/// program that frees the lock without a word is noticed after `every`; the claims behind the head, of
/// which each could only be served when those before it have gone, look the more seldom the more of them
/// there are. A claim far back costs the store three looks in the life of its entry, and no more.
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
