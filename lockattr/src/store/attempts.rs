//! What a claim notes that asks several servers of which each decides for itself (Redlock): it asks each time as
//! another owner, and knows which servers have answered its release.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Claim;
use crate::platform::sync::{Mutex, MutexGuard};

/// The attempts of a claim.
#[derive(Default)]
pub(super) struct Attempts {
    state: Mutex<State>,
    /// Which servers have answered its release, a bit for each, and whether any release notified a waiter.
    released_on: AtomicU64,
}

/// In [`Attempts::released_on`].
const NOTIFIED: u64 = 1 << 63;

#[derive(Default)]
struct State {
    begun: bool,
    /// None for the first, which is the claim itself.
    last: Option<Arc<Claim>>,
    /// Whether the last may have something still.
    queued: bool,
}

impl Attempts {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in there can panic half-way, so a poisoned lock is still good.
        self.state.lock()
    }
}

impl Claim {
    /// The claim as another owner than last time, for a store whose servers may execute what one
    /// attempt asked after they have executed what a later one did: itself the first time, then one
    /// with a new token, that waits in the queue in the same place.
    pub(crate) fn next_attempt(self: &Arc<Self>) -> Arc<Self> {
        let mut attempts = self.attempts.state();
        attempts.queued = true;
        if !std::mem::replace(&mut attempts.begun, true) {
            return self.clone();
        }
        let next = self.as_another_owner();
        attempts.last.insert(Arc::new(next)).clone()
    }

    /// The attempt that was begun last: whose the lock is, if it was granted.
    pub(crate) fn last_attempt(self: &Arc<Self>) -> Arc<Self> {
        self.attempts.state().last.clone().unwrap_or_else(|| self.clone())
    }

    /// The same, for a caller that has no `Arc` of the claim.
    pub(crate) fn last_owner(&self) -> Arc<Self> {
        let last = self.attempts.state().last.clone();
        last.unwrap_or_else(|| Arc::new(self.copied()))
    }

    /// The same, unless it has nothing any more: there was none, or it was given back.
    pub(crate) fn queued_attempt(self: &Arc<Self>) -> Option<Arc<Self>> {
        let queued = self.attempts.state().queued;
        queued.then(|| self.last_attempt())
    }

    /// What its last attempt may have got was given back.
    pub(crate) fn end_attempt(&self) {
        self.attempts.state().queued = false;
    }

    /// This one of several servers has answered its release.
    pub(crate) fn note_released(&self, node: usize, quietly: bool) {
        let notified = if quietly { 0 } else { NOTIFIED };
        self.attempts.released_on.fetch_or((1 << node) | notified, Ordering::AcqRel);
    }

    /// Whether this one has, and if so, whether that was quiet.
    pub(crate) fn released_on(&self, node: usize) -> Option<bool> {
        let bits = self.attempts.released_on.load(Ordering::Acquire);
        (bits & (1 << node) != 0).then_some(bits & NOTIFIED == 0)
    }
}
