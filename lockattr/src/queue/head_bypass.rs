//! Bypassing the head: while the head waits in the store's queue, one of several holders hands its
//! lease to a waiter of this process.

use std::time::Duration;

use super::handoff::SelectedWaiter;
use super::{Limits, WaitQueue, WaitQueues};
use crate::platform::sync::{Arc, Instant};

/// How many callers bypassed the head since the store last granted a lease to this process.
#[derive(Clone, Copy, Debug)]
pub(super) enum HeadBypass {
    /// Their number, and when the first of them did.
    Count(u32, Instant),
    /// The limit was reached at this instant, and one lease went to the store. After [`GRACE`],
    /// further leases go there too.
    Enough(Instant),
}

/// For this long after one lease went to the store, callers still bypass the head: a store nearby
/// may grant that lease to the head. Later, another process may wait there, perhaps for all leases.
/// Over a slower network the other leases go to the store as well.
const GRACE: Duration = Duration::from_millis(2);

impl<W, T, K> WaitQueues<W, T, K> {
    /// Whether the first waiter behind the head may bypass it, if it `fits`. If so, returns an id
    /// that is greater than those of all present waiters, and not greater than those of later ones.
    pub(crate) fn may_bypass_head(
        &self,
        name: &str,
        now: Instant,
        fits: impl FnOnce(&W) -> bool,
    ) -> Option<u64> {
        let mut by_name = self.by_name(name);
        let next = by_name.last_id + 1;
        by_name.queues.get_mut(name)?.admits_bypass(self.limits, now, fits).then_some(next)
    }

    /// Takes the first waiter out of the queue, past the head, if its id is smaller than `before`.
    pub(crate) fn bypass_head(
        self: &Arc<Self>,
        name: &str,
        before: u64,
        now: Instant,
        fits: impl FnOnce(&W) -> bool,
    ) -> Option<SelectedWaiter<W, T, K>> {
        let mut by_name = self.by_name(name);
        let queue = by_name.queues.get_mut(name)?;
        if queue.waiting.front()?.id >= before || !queue.admits_bypass(self.limits, now, fits) {
            return None;
        }
        queue.bypass = match queue.bypass {
            None => Some(HeadBypass::Count(1, now)),
            Some(HeadBypass::Count(count, since)) => Some(HeadBypass::Count(count + 1, since)),
            enough => enough,
        };
        let waiter = queue.waiting.pop_front()?;
        queue.selected.push(waiter.id);
        Some(SelectedWaiter { queues: self.clone(), name: name.into(), waiter })
    }

    /// The store granted a lease for this name: counts the bypasses from zero again.
    pub(crate) fn was_granted(&self, name: &str) {
        if let Some(queue) = self.by_name(name).queues.get_mut(name) {
            queue.bypass = None;
        }
    }
}

impl<W, T, K> WaitQueue<W, T, K> {
    fn admits_bypass(
        &mut self,
        limits: Limits,
        now: Instant,
        fits: impl FnOnce(&W) -> bool,
    ) -> bool {
        if !self.waiting.front().is_some_and(|waiter| fits(&waiter.wants)) {
            return false;
        }
        match self.bypass {
            None => limits.count > 0 || !self.is_answered,
            Some(HeadBypass::Enough(since)) => now.saturating_duration_since(since) < GRACE,
            Some(HeadBypass::Count(count, since)) => {
                // Before its request is answered, the head may not be in the store's queue.
                let is_over = (count >= limits.count && self.is_answered)
                    || now.saturating_duration_since(since) >= limits.time;
                if is_over {
                    self.bypass = Some(HeadBypass::Enough(now));
                }
                !is_over
            }
        }
    }
}
