//! Which claims still hold their locks, and which losses the store reports.

use tokio::time::Instant;

use super::Watchdog;
use crate::LostReason;
use crate::lease::LeaseState;
use crate::store::OwnerToken;

impl Watchdog {
    /// Whether the claim with this token holds its lock.
    pub(crate) fn holds(&self, token: OwnerToken) -> bool {
        let (holds, now) = (self.leases().leases.holds_of(token), Instant::now());
        holds.iter().any(|hold| hold.is_live(now))
    }

    /// Whether the claim with this token has lost its lock, and its holder has not released it yet.
    pub(crate) fn has_lost(&self, token: OwnerToken) -> bool {
        let (holds, now) = (self.leases().leases.holds_of(token), Instant::now());
        !holds.is_empty() && holds.iter().all(|hold| !hold.is_live(now))
    }

    /// Handles the store's report that the claim with this token has lost its lock.
    pub(crate) fn lost(&self, token: OwnerToken) {
        // Before the search: a lease that is stored after the search finds the loss.
        self.early_losses.note(token);
        let holds = self.leases().leases.lose_all_of(token);
        if !holds.is_empty() {
            self.early_losses.forget(token);
        }
        // Outside the queue's mutex: a woken task may lock it.
        holds.iter().for_each(|hold| self.lose(hold));
    }

    /// Signals a holder that the store no longer has its lock.
    pub(super) fn lose(&self, hold: &LeaseState) {
        // No event while the lock is being released: the release may have overtaken a renewal.
        let was_live = hold.is_live(Instant::now());
        hold.lose(LostReason::Taken);
        if was_live {
            self.report_lost(hold, LostReason::Taken);
        }
    }

    /// Signals a holder whose deadline has passed.
    pub(super) fn end(&self, hold: &LeaseState) {
        if let Some(reason) = hold.signal_end() {
            self.report_lost(hold, reason);
        }
    }

    /// Emits an event about a lost lease, unless there was one. Must not be called under the
    /// queue's mutex: a subscriber may acquire a lock.
    pub(crate) fn report_lost(&self, hold: &LeaseState, reason: LostReason) {
        if self.telemetry.lost(hold, reason) {
            // The task may be asleep for longer than until the summary.
            self.queue().wake();
        }
    }

    /// Ends the lease of the claim with this token, as if it had expired.
    #[cfg(feature = "testing")]
    pub(crate) fn expired(&self, token: OwnerToken) {
        let holds = self.leases().leases.holds_of(token);
        holds.iter().for_each(|hold| hold.lose(LostReason::Expired));
    }
}
