//! Getting in past the head: one of several holders lets go of its lease, and hands it to a waiter of this
//! process, while the head waits in the store's queue for another.

use std::time::Duration;

use super::handoff::SelectedWaiter;
use super::{Limits, WaitQueue, WaitQueues};
use crate::platform::sync::{Arc, Instant};

/// How many callers got in past the heads since the store last granted this process a lease.
#[derive(Clone, Copy, Debug)]
pub(super) enum HeadBypass {
    /// So many, and since when.
    Count(u32, Instant),
    /// The limit was reached then, and one lease went to the store. After [`GRACE`] the others go there too.
    Enough(Instant),
}

/// For so long after one lease went to the store, callers still get in past the head: a store nearby may grant that
/// lease to the head. Later, somebody else may wait there, perhaps for all leases; over a slower network the other
/// leases go there as well.
const GRACE: Duration = Duration::from_millis(2);

impl<W, T, K> WaitQueues<W, T, K> {
    /// Whether the first waiter behind the head may have a lease past it, if it `fits`. If so, returns a bound:
    /// all who wait now have smaller numbers, and all who come later do not.
    pub(crate) fn may_pass_head(
        &self,
        name: &str,
        now: Instant,
        fits: impl FnOnce(&W) -> bool,
    ) -> Option<u64> {
        let mut by_name = self.by_name(name);
        let next = by_name.last_id + 1;
        by_name.queues.get_mut(name)?.admits_past_head(self.limits, now, fits).then_some(next)
    }

    /// Takes out the first waiter if its number is smaller than `before`: it gets in past the head.
    pub(crate) fn pass(
        self: &Arc<Self>,
        name: &str,
        before: u64,
        now: Instant,
        fits: impl FnOnce(&W) -> bool,
    ) -> Option<SelectedWaiter<W, T, K>> {
        let mut by_name = self.by_name(name);
        let queue = by_name.queues.get_mut(name)?;
        if queue.waiting.front()?.id >= before || !queue.admits_past_head(self.limits, now, fits) {
            return None;
        }
        queue.past = match queue.past {
            None => Some(HeadBypass::Count(1, now)),
            Some(HeadBypass::Count(count, since)) => Some(HeadBypass::Count(count + 1, since)),
            enough => enough,
        };
        let waiter = queue.waiting.pop_front()?;
        queue.called.push(waiter.id);
        Some(SelectedWaiter { queues: self.clone(), name: name.into(), waiter })
    }

    /// The store granted a lease of this name: from now on as many may get in past the head as before.
    pub(crate) fn was_granted(&self, name: &str) {
        if let Some(queue) = self.by_name(name).queues.get_mut(name) {
            queue.past = None;
        }
    }
}

impl<W, T, K> WaitQueue<W, T, K> {
    fn admits_past_head(
        &mut self,
        limits: Limits,
        now: Instant,
        fits: impl FnOnce(&W) -> bool,
    ) -> bool {
        if !self.waiting.front().is_some_and(|waiter| fits(&waiter.wants)) {
            return false;
        }
        match self.past {
            None => limits.count > 0 || !self.is_answered,
            Some(HeadBypass::Enough(since)) => now.saturating_duration_since(since) < GRACE,
            Some(HeadBypass::Count(count, since)) => {
                // Before its question is answered, the head may not be in the store's queue.
                let is_over = (count >= limits.count && self.is_answered)
                    || now.saturating_duration_since(since) >= limits.time;
                if is_over {
                    self.past = Some(HeadBypass::Enough(now));
                }
                !is_over
            }
        }
    }
}
