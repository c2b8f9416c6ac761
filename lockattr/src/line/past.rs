//! Getting in past the head: one of several holders lets go of its lease, and hands it to a waiter of this
//! process, while the head waits in the store's queue for another.

use super::handed::Called;
use super::{Limits, Line, Lines};
use crate::sync::{Arc, Instant};

impl<W, T, K> Lines<W, T, K> {
    /// Whether the first waiter behind the head of this name may have a lease past it, if it `fits`: then a
    /// number, smaller than which are those of all who wait now.
    pub(crate) fn may_pass(
        &self,
        name: &str,
        now: Instant,
        fits: impl FnOnce(&W) -> bool,
    ) -> Option<u64> {
        let mut by_name = self.by_name(name);
        let next = by_name.last_id + 1;
        by_name.lines.get_mut(name)?.lets_past(self.limits, now, fits).then_some(next)
    }

    /// That waiter, if it has a number smaller than `before`. It gets in past the head.
    pub(crate) fn pass(
        self: &Arc<Self>,
        name: &str,
        before: u64,
        now: Instant,
        fits: impl FnOnce(&W) -> bool,
    ) -> Option<Called<W, T, K>> {
        let mut by_name = self.by_name(name);
        let line = by_name.lines.get_mut(name)?;
        if line.waiting.front()?.id >= before || !line.lets_past(self.limits, now, fits) {
            return None;
        }
        line.past.get_or_insert((now, 0)).1 += 1;
        let waiter = line.waiting.pop_front()?;
        line.called.push(waiter.id);
        Some(Called { lines: self.clone(), name: name.into(), waiter })
    }
}

impl<W, T, K> Line<W, T, K> {
    fn lets_past(&mut self, limits: Limits, now: Instant, fits: impl FnOnce(&W) -> bool) -> bool {
        if !self.waiting.front().is_some_and(|waiter| fits(&waiter.wants)) {
            return false;
        }
        let (since, count) = self.past.unwrap_or((now, 0));
        // Before its question is answered, the head may not be in the store's queue.
        let is_over = (count >= limits.count && self.is_answered)
            || now.saturating_duration_since(since) >= limits.time;
        if is_over {
            // This one lease goes to the store, to who comes first there. The others need not.
            self.past = None;
        }
        !is_over
    }
}
