//! A hand-off on its way to a waiter: it is pending until the waiter picks it up.
//!
//! A waiter may never pick it up, because its runtime does not poll it any more. So another waiter,
//! or the watchdog, takes back a hand-off that has been pending for too long, and passes it to the
//! next waiter. The waiter that missed it rejoins the queue when it is polled.

use std::time::Duration;

use super::waiter::QueuedWaiter;
use super::{ByName, Head, Name, Received, WaitQueue, WaitQueues, locked};
use crate::platform::sync::{Arc, Instant};

/// A hand-off that is pending for longer is passed to the next waiter.
pub(crate) const PICK_UP_TIMEOUT: Duration = Duration::from_millis(100);

/// What a waiter is handed.
#[derive(Debug)]
pub(super) enum Handoff<T> {
    /// The lock, handed off.
    Lock(T),
    /// The role of the head, with its id: this waiter now sends the requests to the store.
    Head(u64),
}

/// A hand-off that its waiter has not picked up yet.
pub(super) struct PendingHandoff<T> {
    id: u64,
    handoff: Handoff<T>,
    /// When another caller first saw it pending.
    seen: Option<Instant>,
}

/// The outcome of a check for hand-offs that were not picked up.
#[derive(Debug)]
#[must_use = "dropping it passes the hand-off to the next waiter"]
pub(crate) enum Unclaimed<W, T, K = ()> {
    Nothing,
    /// Hand-offs are pending, and their waiters have time left.
    ForNow,
    TooLong(Received<W, T, K>),
}

/// A waiter that was taken out of the queue to get the lock.
pub(crate) struct SelectedWaiter<W, T, K = ()> {
    pub(super) queues: Arc<WaitQueues<W, T, K>>,
    pub(super) name: Name,
    pub(super) waiter: QueuedWaiter<W>,
}

impl<W, T, K> SelectedWaiter<W, T, K> {
    pub(crate) fn wants(&self) -> &W {
        &self.waiter.wants
    }

    /// Hands the lock to the waiter, or returns it if the waiter is gone.
    pub(crate) fn hand_off(self, lock: T) -> Result<(), T> {
        let Self { queues, name, waiter } = self;
        {
            let mut by_name = queues.by_name(&name);
            if !by_name.queues.get_mut(&name).is_some_and(|queue| queue.unselect(waiter.id)) {
                return Err(lock);
            }
            by_name.add_pending(&name, waiter.id, Handoff::Lock(lock));
        }
        // The mutex is unlocked first: the woken waiter may lock it.
        waiter.notify();
        Ok(())
    }
}

impl<W, T, K> ByName<W, T, K> {
    /// Stores a hand-off for the waiter with this id to pick up.
    pub(super) fn add_pending(&mut self, name: &str, id: u64, handoff: Handoff<T>) {
        if let Some(queue) = self.queues.get_mut(name) {
            queue.pending.push(PendingHandoff { id, handoff, seen: None });
            self.pending += 1;
        }
    }

    /// Takes out the hand-off for the waiter with this id.
    pub(super) fn pick_up(&mut self, name: &str, id: u64) -> Option<Handoff<T>> {
        let queue = self.queues.get_mut(name)?;
        let at = queue.pending.iter().position(|pending| pending.id == id)?;
        self.pending -= 1;
        let handoff = queue.pending.swap_remove(at).handoff;
        if queue.has_no_head() {
            self.remove_if_empty(name);
        }
        Some(handoff)
    }
}

impl<W, T, K> WaitQueue<W, T, K> {
    /// Returns whether this waiter was selected to get the lock, and unselects it.
    pub(super) fn unselect(&mut self, id: u64) -> bool {
        let at = self.selected.iter().position(|selected| *selected == id);
        at.map(|at| self.selected.swap_remove(at)).is_some()
    }

    /// The waiter whose hand-off has been pending for too long: `Some(None)` if none has, `None` if
    /// no hand-off is pending.
    fn unclaimed(&mut self, now: Instant) -> Option<Option<u64>> {
        let mut overdue = None;
        for pending in &mut self.pending {
            let seen = *pending.seen.get_or_insert(now);
            if now.saturating_duration_since(seen) >= PICK_UP_TIMEOUT {
                overdue = overdue.or(Some(pending.id));
            }
        }
        (!self.pending.is_empty()).then_some(overdue)
    }
}

impl<W, T, K> WaitQueues<W, T, K> {
    /// Checks the hand-offs that are pending for the lock of this name. Takes one back that a check
    /// at least `PICK_UP_TIMEOUT` ago saw already.
    pub(crate) fn check_unclaimed(
        self: &Arc<Self>,
        name: &str,
        now: Instant,
    ) -> Unclaimed<W, T, K> {
        let mut by_name = self.by_name(name);
        let id = match by_name.queues.get_mut(name).and_then(|queue| queue.unclaimed(now)) {
            None => return Unclaimed::Nothing,
            Some(None) => return Unclaimed::ForNow,
            Some(Some(id)) => id,
        };
        let handoff = by_name.pick_up(name, id);
        handoff.map_or(Unclaimed::Nothing, |handoff| {
            Unclaimed::TooLong(self.received(name.into(), handoff))
        })
    }

    /// Does the same for all locks.
    pub(crate) fn reclaim_all(self: &Arc<Self>, now: Instant) -> Vec<Received<W, T, K>> {
        let mut names = Vec::new();
        for shard in &self.shards {
            let by_name = locked(shard);
            if by_name.pending > 0 {
                let pending = by_name.queues.iter().filter(|(_, queue)| !queue.pending.is_empty());
                names.extend(pending.map(|(name, _)| name.clone()));
            }
        }
        // Sorted, because the order of a map differs from run to run.
        names.sort();
        let checked = names.iter().map(|name| self.check_unclaimed(name, now));
        let reclaimed = checked.filter_map(|unclaimed| match unclaimed {
            Unclaimed::TooLong(received) => Some(received),
            Unclaimed::Nothing | Unclaimed::ForNow => None,
        });
        reclaimed.collect()
    }

    pub(super) fn received(self: &Arc<Self>, name: Name, handoff: Handoff<T>) -> Received<W, T, K> {
        match handoff {
            Handoff::Lock(lock) => Received::Lock(lock),
            Handoff::Head(id) => {
                Received::Head(Head { queues: self.clone(), name, id, left: false })
            }
        }
    }
}
