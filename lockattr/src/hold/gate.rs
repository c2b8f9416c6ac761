//! The gate of an entry: its direct children pass one at a time, or together if they share.

use crate::platform::sync::Semaphore;
use crate::store::Sharing;

/// The slots of a gate: a child that shares takes one, any other takes all.
const SLOTS: u32 = 1 << 16;

/// The gate of one entry. A child that has passed is inside until it [leaves](Self::leave).
#[derive(Debug)]
pub(crate) struct Gate(Semaphore);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Semaphore::new(SLOTS as usize))
    }

    /// Waits until the gate is free and passes. Dropping the future leaves no trace.
    pub(crate) async fn enter(&self, sharing: Sharing) {
        // The gate is never closed, so a permit always arrives.
        if let Ok(permit) = self.0.acquire_many(slots(sharing)).await {
            permit.forget();
        }
    }

    /// Passes if no child is inside or waits; returns whether it passed.
    pub(crate) fn try_enter(&self, sharing: Sharing) -> bool {
        let Ok(permit) = self.0.try_acquire_many(slots(sharing)) else { return false };
        permit.forget();
        true
    }

    pub(crate) fn leave(&self, sharing: Sharing) {
        self.0.add_permits(slots(sharing) as usize);
    }
}

fn slots(sharing: Sharing) -> u32 {
    if sharing == Sharing::Shared { 1 } else { SLOTS }
}
