//! Losses that a store reports before the lease is watched: the connection that had the lock has
//! ended, and the caller has not yet read its grant.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::OwnerToken;

/// How long a loss is remembered at least. A caller that reads its grant later learns of the loss
/// by a renewal.
const REMEMBER_FOR: Duration = Duration::from_secs(60);

/// The losses of leases that are not watched yet, by the claims' tokens.
#[derive(Default)]
pub(super) struct EarlyLosses {
    /// Whether there are any. Usually there are none, and then acquisitions need not lock the
    /// mutex.
    any: AtomicBool,
    lost_at: Mutex<HashMap<OwnerToken, Instant>>,
}

impl EarlyLosses {
    /// Records that the claim with this token has lost what it was granted until now.
    pub(super) fn note(&self, token: OwnerToken) {
        let mut lost_at = self.lost_at();
        lost_at.insert(token, Instant::now());
        self.any.store(true, Ordering::SeqCst);
    }

    /// The lease of this claim is watched, and its loss was signalled.
    pub(super) fn forget(&self, token: OwnerToken) {
        let mut lost_at = self.lost_at();
        lost_at.remove(&token);
        self.any.store(!lost_at.is_empty(), Ordering::SeqCst);
    }

    /// Whether the claim with this token has lost the lease that began at `began`. Returns `true`
    /// once for each loss.
    pub(super) fn take(&self, token: OwnerToken, began: Instant) -> bool {
        if !self.any.load(Ordering::SeqCst) {
            return false;
        }
        let now = Instant::now();
        let mut lost_at = self.lost_at();
        // A loss before `began` was that of an earlier lease.
        let is_lost = lost_at.remove(&token).is_some_and(|lost_at| began <= lost_at);
        lost_at.retain(|_, lost_at| now < *lost_at + REMEMBER_FOR);
        self.any.store(!lost_at.is_empty(), Ordering::SeqCst);
        is_lost
    }

    fn lost_at(&self) -> MutexGuard<'_, HashMap<OwnerToken, Instant>> {
        // No panic can leave this half-changed, so a poisoned mutex is safe to use.
        self.lost_at.lock()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// Red without: the removal in `take`, or the comparison there.
    #[tokio::test(start_paused = true)]
    async fn a_loss_is_notified_once_and_to_no_later_lease() {
        let (losses, began) = (EarlyLosses::default(), Instant::now());
        let (token, other) = (OwnerToken::random(1), OwnerToken::random(1));
        advance(MILLISECOND).await;
        losses.note(token);
        assert!(!losses.take(other, began));
        assert!(losses.take(token, began));
        assert!(!losses.take(token, began), "the loss is signalled once");
        losses.note(token);
        advance(MILLISECOND).await;
        assert!(!losses.take(token, Instant::now()), "a later lease");
    }

    /// Red without: `retain`, or the removal in `forget`.
    #[tokio::test(start_paused = true)]
    async fn a_loss_that_no_process_asks_for_is_forgotten() {
        let (losses, began) = (EarlyLosses::default(), Instant::now());
        let (token, other) = (OwnerToken::random(1), OwnerToken::random(1));
        let none = || !losses.any.load(Ordering::SeqCst) && losses.lost_at().is_empty();
        losses.note(token);
        assert!(!losses.take(other, began) && !none());
        advance(REMEMBER_FOR).await;
        assert!(!losses.take(other, began) && none());
        losses.note(token);
        losses.forget(token);
        assert!(none());
    }
}
