//! When a request to acquire left this process. Until then it waits in this process, for a connection or in a batch, and
//! the store has nothing to answer and nothing to undo.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::Claim;

/// The departure of a claim's last request.
pub(super) struct Departure {
    created: Instant,
    /// How many parts of the request are out, above [`COUNT`], and when the first of them left, in microseconds after
    /// `created`.
    state: AtomicU64,
}

/// The bits below are eight years of microseconds.
const COUNT: u32 = 48;
const MICROS: u64 = (1 << COUNT) - 1;
/// The largest count.
const MOST: u64 = u64::MAX >> COUNT;

impl Default for Departure {
    fn default() -> Self {
        Self { created: Instant::now(), state: AtomicU64::new(0) }
    }
}

impl Departure {
    fn change(&self, change: impl Fn(u64) -> u64) {
        // The closure always returns a value.
        let change = |state| Some(change(state));
        _ = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
    }
}

impl Claim {
    /// Notes that the claim's request to acquire is sent now. If the store sends several requests for one, the first
    /// counts.
    ///
    /// For a store that [notes departures](super::Store::notes_departures).
    ///
    /// ```
    /// use lockattr::store::{Claim, LockKey};
    ///
    /// let claim = Claim::new(LockKey::new("lock:", "product:42")?, "");
    /// claim.departs();
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    pub fn departs(&self) {
        let departure = self.departure();
        let micros = departure.created.elapsed().as_micros();
        let now = u64::try_from(micros).unwrap_or(MICROS).min(MICROS);
        // The lease counts from the first request that the store may have executed.
        departure.change(|state| match state >> COUNT {
            0 => (1 << COUNT) | now,
            // A server that lets a claim ask again without end must not change when it left.
            MOST.. => state,
            _ => state + (1 << COUNT),
        });
    }

    /// What has left was answered: it acquired nothing. Another request follows, which may wait in this process first.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(crate) fn returns(&self) {
        self.departure().change(|state| match state >> COUNT {
            0 | 1 => 0,
            _ => state - (1 << COUNT),
        });
    }

    /// Another request begins. The store notes when it leaves; if not, it counts as sent now.
    pub(crate) fn begin_request(&self, store_notes_departures: bool) {
        self.departure().state.store(0, Ordering::Release);
        if !store_notes_departures {
            self.departs();
        }
    }

    /// When its last request left this process. If that was dropped before, it never leaves.
    pub(crate) fn departed_at(&self) -> Option<Instant> {
        let departure = self.departure();
        let state = departure.state.load(Ordering::Acquire);
        (state >> COUNT > 0).then(|| departure.created + Duration::from_micros(state & MICROS))
    }

    /// That of the whole acquisition, if this claim is an attempt or a part of it.
    fn departure(&self) -> &Departure {
        let mut whole = self;
        while let Some(next) = &whole.queued_as {
            whole = next;
        }
        &whole.departure
    }
}

#[cfg(all(test, any(feature = "postgres", feature = "mysql")))]
mod tests {
    use std::sync::Arc;

    use tokio::time::advance;

    use super::*;
    use crate::store::LockKey;

    /// Red without: the `0` in `departs`, the other arm in `returns`, or the loop in `departure`.
    #[tokio::test(start_paused = true)]
    async fn a_request_counts_from_when_the_first_part_of_it_left() {
        let claim = Arc::new(Claim::new(LockKey::new("", "a").unwrap(), ""));
        claim.begin_request(true);
        assert_eq!(claim.departed_at(), None);
        advance(Duration::from_secs(1)).await;
        let left = Instant::now();
        claim.as_another_owner().departs();
        advance(Duration::from_secs(1)).await;
        claim.departs();
        assert_eq!(claim.departed_at(), Some(left));
        claim.returns();
        assert_eq!(claim.departed_at(), Some(left), "one of two is out");
        claim.returns();
        assert_eq!(claim.departed_at(), None);
        claim.departs();
        assert_eq!(claim.departed_at(), Some(Instant::now()));
        claim.begin_request(true);
        assert_eq!(claim.departed_at(), None);
        claim.begin_request(false);
        assert_eq!(claim.departed_at(), Some(Instant::now()));
    }
}
