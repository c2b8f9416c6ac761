//! The head of a wait queue: the caller of this process that asks the store, or holds the lock.

use std::collections::hash_map::Entry;
use std::fmt;

use super::handoff::{Handoff, SelectedWaiter};
use super::waiter::QueuedWaiter;
use super::{ByName, Limits, Name, WaitQueue, WaitQueues, wake};
use crate::platform::sync::{Arc, Instant};

/// What follows when the head is done.
pub(crate) enum Next<W, T, K = ()> {
    /// This waiter gets the lock.
    Waiter(SelectedWaiter<W, T, K>),
    /// No caller who could have it from here; the next one, if any, asks the store.
    Store {
        /// Whether another process waits.
        contended: bool,
    },
}

/// The head of a wait queue. It asks the store, or holds the lock. When it is dropped, the next waiter
/// becomes the head.
pub(crate) struct Head<W, T, K = ()> {
    pub(super) queues: Arc<WaitQueues<W, T, K>>,
    pub(super) name: Name,
    pub(super) id: u64,
    pub(super) left: bool,
}

/// The head as seen by callers that hold the lock together. The last of them drops the head.
pub(crate) struct SharedHead<W, T, K = ()> {
    queues: Arc<WaitQueues<W, T, K>>,
    name: Name,
    id: u64,
}

impl<W, T, K> Head<W, T, K> {
    /// The store granted the lock, and reported whether other claims waited at that moment; this process
    /// may have been notified of later ones before. `ours` is what waiters here learn about the lock.
    pub(crate) fn granted(&self, contended: bool, ours: K, now: Instant) {
        let known_waiters = {
            let mut by_name = self.queues.by_name(&self.name);
            let Some(queue) = by_name.queue_of(self) else { return };
            if contended || queue.contended.is_some() {
                queue.contended = Some((now, 0));
            }
            queue.learn(ours, true)
        };
        wake(known_waiters);
    }

    /// The store answered that another process holds the lock, or did not answer.
    pub(crate) fn learned(&self, known: K) {
        let known_waiters = {
            let mut by_name = self.queues.by_name(&self.name);
            let Some(queue) = by_name.queue_of(self) else { return };
            queue.is_answered = true;
            queue.learn(known, false)
        };
        wake(known_waiters);
    }

    /// It lives, and has nothing else to say.
    pub(crate) fn show_life(&self) {
        if let Some(queue) = self.queues.by_name(&self.name).queue_of(self) {
            queue.signs += 1;
        }
    }

    /// What the previous head learned about the lock.
    pub(crate) fn known(&self) -> Option<K>
    where
        K: Clone,
    {
        let mut by_name = self.queues.by_name(&self.name);
        by_name.queue_of(self)?.known.as_ref().map(|(known, _)| known.clone())
    }

    /// Who gets the lock next, if `fits` says that the first in the queue can have it from here.
    pub(crate) fn next(&self, now: Instant, fits: impl FnOnce(&W) -> bool) -> Next<W, T, K> {
        self.queues.next(&self.name, self.id, now, fits)
    }

    /// From now on several callers hold the lock together. From `ours`, waiters here learn how to join
    /// them.
    pub(crate) fn share(&self, ours: K) {
        if let Some(queue) = self.queues.by_name(&self.name).queue_of(self) {
            queue.known = Some((ours, true));
            queue.signs += 1;
        }
    }

    /// The head as seen by callers that hold the lock together.
    pub(crate) fn shared(&self) -> SharedHead<W, T, K> {
        SharedHead { queues: self.queues.clone(), name: self.name.clone(), id: self.id }
    }

    /// Leaves the lock here until `until`, for the next call; gives it back if somebody waits.
    pub(crate) fn cache(mut self, lock: T, until: Instant) -> Result<(), T> {
        let queues = self.queues.clone();
        let mut by_name = queues.by_name(&self.name);
        match by_name.queue_of(&self) {
            Some(queue) if queue.waiting.is_empty() && queue.contended.is_none() => {
                queue.cached = Some(Box::new((lock, until)));
                self.left = true;
                Ok(())
            }
            _ => {
                // The mutex is unlocked before `self` is dropped, which locks it.
                drop(by_name);
                Err(lock)
            }
        }
    }

    fn leave(&mut self) {
        self.left = true;
        let waiter = {
            let mut by_name = self.queues.by_name(&self.name);
            // The usual end of a free lock: its name is looked up once.
            let Entry::Occupied(mut queue) = by_name.queues.entry(self.name.clone()) else {
                return;
            };
            if queue.get().head != self.id {
                return;
            }
            let alone = queue.get().selected.is_empty() && queue.get().pending.is_empty();
            if alone && queue.get().waiting.is_empty() {
                queue.remove();
                return;
            }
            // What the store last said of it stays true for now; that it was ours does not.
            queue.get_mut().known.take_if(|(_, ours)| *ours);
            by_name.promote_next(&self.name)
        };
        // Not while the lines are locked: the caller that is woken may want them.
        if let Some(waiter) = waiter {
            waiter.notify();
        }
    }
}

impl<W, T, K> WaitQueues<W, T, K> {
    /// Selects the next holder after the head with this number.
    fn next(
        self: &Arc<Self>,
        name: &Name,
        id: u64,
        now: Instant,
        fits: impl FnOnce(&W) -> bool,
    ) -> Next<W, T, K> {
        let mut by_name = self.by_name(name);
        let Some(queue) = by_name.queue_headed_by(name, id) else {
            return Next::Store { contended: false };
        };
        let to_store = Next::Store { contended: queue.contended.is_some() };
        if !queue.waiting.front().is_some_and(|waiter| fits(&waiter.wants)) {
            return to_store;
        }
        let Limits { count, time } = self.limits;
        if let Some((since, passed)) = &mut queue.contended {
            if *passed >= count || now.saturating_duration_since(*since) >= time {
                return to_store;
            }
            *passed += 1;
        }
        let Some(waiter) = queue.waiting.pop_front() else { return to_store };
        queue.selected.push(waiter.id);
        Next::Waiter(SelectedWaiter { queues: self.clone(), name: name.clone(), waiter })
    }
}

impl<W, T, K> SharedHead<W, T, K> {
    /// Who may have the lock beside those who have it, if `fits` says that the first in the queue can.
    pub(crate) fn next(&self, now: Instant, fits: impl FnOnce(&W) -> bool) -> Next<W, T, K> {
        self.queues.next(&self.name, self.id, now, fits)
    }

    /// Whether `which` is true of any waiter.
    pub(crate) fn any_waits(&self, which: impl Fn(&W) -> bool) -> bool {
        let mut by_name = self.queues.by_name(&self.name);
        let queue = by_name.queue_headed_by(&self.name, self.id);
        queue.is_some_and(|queue| queue.waiting.iter().any(|waiter| which(&waiter.wants)))
    }
}

impl<W, T, K> ByName<W, T, K> {
    /// The queue of a head, unless that was passed over.
    fn queue_of(&mut self, head: &Head<W, T, K>) -> Option<&mut WaitQueue<W, T, K>> {
        self.queue_headed_by(&head.name, head.id)
    }

    fn queue_headed_by(&mut self, name: &str, id: u64) -> Option<&mut WaitQueue<W, T, K>> {
        self.queues.get_mut(name).filter(|queue| queue.head == id)
    }

    /// The first waiter becomes the head, once it is notified; without one there is no queue any more.
    pub(super) fn promote_next(&mut self, name: &str) -> Option<QueuedWaiter<W>> {
        let id = self.next_id();
        let queue = self.queues.get_mut(name)?;
        queue.contended = None;
        queue.set_head(id);
        let Some(waiter) = queue.waiting.pop_front() else {
            self.remove_head(name);
            return None;
        };
        self.add_pending(name, waiter.id, Handoff::Head(id));
        Some(waiter)
    }
}

impl<W, T, K> Drop for Head<W, T, K> {
    fn drop(&mut self) {
        if !self.left {
            self.leave();
        }
    }
}

impl<W, T, K> fmt::Debug for Head<W, T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head").field("name", &self.name).finish_non_exhaustive()
    }
}
