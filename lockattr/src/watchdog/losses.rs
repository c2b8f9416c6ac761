//! Which claims hold their locks still, and what the store reports as lost.

use tokio::time::Instant;

use super::Watchdog;
use crate::LostReason;
use crate::lease::LeaseState;
use crate::store::OwnerToken;

impl Watchdog {
    /// Whether the claim with this token has its lock.
    pub(crate) fn holds(&self, token: OwnerToken) -> bool {
        let (holds, now) = (self.leases().leases.holds_of(token), Instant::now());
        holds.iter().any(|hold| hold.is_live(now))
    }

    /// Whether the claim with this token had its lock and has it no more, though its holder has not let go
    /// of it yet.
    pub(crate) fn has_lost(&self, token: OwnerToken) -> bool {
        let (holds, now) = (self.leases().leases.holds_of(token), Instant::now());
        !holds.is_empty() && holds.iter().all(|hold| !hold.is_live(now))
    }

    /// The store says by itself that the claim with this token has lost its lock.
    pub(crate) fn lost(&self, token: OwnerToken) {
        // Before the look: a lease that comes behind it finds the loss.
        self.early_losses.note(token);
        let holds = self.leases().leases.lose_all_of(token);
        if !holds.is_empty() {
            self.early_losses.forget(token);
        }
        // Not while the queue is locked: the caller that is woken may want it.
        holds.iter().for_each(|hold| lose(hold));
    }

    /// The lease of the claim with this token is over, for its holder as for the store.
    #[cfg(feature = "testing")]
    pub(crate) fn expired(&self, token: OwnerToken) {
        let holds = self.leases().leases.holds_of(token);
        holds.iter().for_each(|hold| hold.lose(LostReason::Expired));
    }
}

/// Tells a holder that the store has its lock no more.
pub(super) fn lose(hold: &LeaseState) {
    // Not where it is being released: that may have overtaken a renewal.
    if hold.is_live(Instant::now()) {
        let key = hold.claim().key().as_str();
        tracing::warn!(
            key,
            "the lease was lost: the store no longer has this process as its holder"
        );
    }
    hold.lose(LostReason::Taken);
}
