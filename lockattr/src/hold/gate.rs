//! The gate of an entry: its direct children pass by turns, those that share together, others alone.

use crate::platform::sync::Semaphore;
use crate::store::Sharing;

/// The turns of a gate: one who shares takes one of them, one who does not takes them all.
const SLOTS: u32 = 1 << 16;

/// The gate of one entry. Who has passed it is inside until it [leaves](Self::leave).
#[derive(Debug)]
pub(crate) struct Gate(Semaphore);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Semaphore::new(SLOTS as usize))
    }

    /// Waits for the turn to pass. Nothing is left behind if this is dropped before.
    pub(crate) async fn enter(&self, sharing: Sharing) {
        // The gate is never closed, so the permit always comes.
        if let Ok(permit) = self.0.acquire_many(slots(sharing)).await {
            permit.forget();
        }
    }

    /// Passes if no caller has the turn, nor waits for it; whether it has passed.
    pub(crate) fn try_enter(&self, sharing: Sharing) -> bool {
        let Ok(permit) = self.0.try_acquire_many(slots(sharing)) else { return false };
        permit.forget();
        true
    }

    /// The next has the turn of one who has passed for this.
    pub(crate) fn leave(&self, sharing: Sharing) {
        self.0.add_permits(slots(sharing) as usize);
    }
}

/// Children that share may be inside together.
fn slots(sharing: Sharing) -> u32 {
    if sharing == Sharing::Shared { 1 } else { SLOTS }
}
