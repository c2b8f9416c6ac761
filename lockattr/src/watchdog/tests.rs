//! Losses that are reported at a bad moment.

use super::*;
use crate::FencingToken;
use crate::lease::GrantedLease;
use crate::store::{Claim, LockKey, MemoryStore, RenewOutcome, RenewRequest};

const TTL: Duration = Duration::from_secs(30);

/// The wait queues of a process without waiters.
struct NoQueues;

impl Queues for NoQueues {
    fn recheck(&self, _: &str) -> Option<Instant> {
        None
    }

    fn reclaim_unclaimed(&self) {}

    fn release_cached(&self) {}
}

/// A watchdog without leases.
pub(super) fn watchdog() -> Arc<Watchdog> {
    let store = AnyStore::new(MemoryStore::new());
    Arc::new(Watchdog::new(store, Arc::new(NoQueues), Duration::ZERO))
}

/// A watched hold, and its lease's id.
fn watched(watchdog: &Watchdog) -> (Arc<LeaseState>, u64) {
    let claim = Arc::new(Claim::new(LockKey::new("lock:", "a").unwrap(), ""));
    let (fencing, requested_at) = (FencingToken::from_counter(7), Instant::now());
    let granted = GrantedLease {
        claim,
        fencing,
        requested_at,
        ttl: TTL,
        renew: true,
        max_hold: None,
        progress_within: None,
    };
    let hold = Arc::new(LeaseState::new(granted));
    let (id, _) = watchdog.watch(&hold, requested_at, TTL);
    (hold, id)
}

/// The last holder has found its lease valid and hands it off. The next holder learns of the loss
/// as soon as it has the lease.
#[tokio::test(start_paused = true)]
async fn a_loss_between_two_holders_is_notified_to_the_second() {
    let store = AnyStore::new(MemoryStore::new());
    let watchdog = Watchdog::new(store, Arc::new(NoQueues), Duration::ZERO);
    // Reported by the store, or by the answer to a renewal.
    for by_itself in [true, false] {
        let (last, id) = watched(&watchdog);
        let next = Arc::new(last.handed_off(last.fencing(), TTL, None, Instant::now()));
        last.lose(LostReason::Released);
        if by_itself {
            watchdog.lost(last.claim().token());
        } else {
            drop(watchdog.leases());
            let renewal = RenewRequest::new(last.claim().clone(), TTL);
            watchdog.settle_renewal(id, &renewal, Ok(RenewOutcome::NotHeld), Instant::now());
        }
        watchdog.hand_off(id, &next, Instant::now());
        assert!(!next.is_live(Instant::now()), "{by_itself}");
        assert_eq!(next.ended_by(), Some(LostReason::Taken));
        watchdog.forget(id);
    }
}
