//! The head of a wait queue: the caller of this process that sends the requests to the store, or
//! holds the lock.

use std::collections::hash_map::Entry;
use std::fmt;

use super::handoff::{Handoff, SelectedWaiter};
use super::waiter::QueuedWaiter;
use super::{ByName, Limits, Name, WaitQueue, WaitQueues, wake};
use crate::platform::sync::{Arc, Instant};

/// What happens to the lock when its holder is done.
pub(crate) enum Next<W, T, K = ()> {
    /// This waiter gets the lock.
    Waiter(SelectedWaiter<W, T, K>),
    /// No waiter can get it from here. The next one, if any, sends a request to the store.
    Store {
        /// Whether another process waits.
        contended: bool,
    },
}

/// The head of a wait queue: it sends the requests to the store, or holds the lock. When it is
/// dropped, the next waiter becomes the head.
pub(crate) struct Head<W, T, K = ()> {
    pub(super) queues: Arc<WaitQueues<W, T, K>>,
    pub(super) name: Name,
    pub(super) id: u64,
    pub(super) left: bool,
}

/// A view of the head for callers that hold the lock together. The last of them drops the head.
pub(crate) struct SharedHead<W, T, K = ()> {
    queues: Arc<WaitQueues<W, T, K>>,
    name: Name,
    id: u64,
}

impl<W, T, K> Head<W, T, K> {
    /// Records that the store granted the lock, and whether it reported waiting claims. This
    /// process may have been notified of later claims before. `ours` is what waiters here learn
    /// about the lock.
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

    /// Records what the store answered, or that it did not answer.
    pub(crate) fn learned(&self, known: K) {
        let known_waiters = {
            let mut by_name = self.queues.by_name(&self.name);
            let Some(queue) = by_name.queue_of(self) else { return };
            queue.is_answered = true;
            queue.learn(known, false)
        };
        wake(known_waiters);
    }

    /// Shows that the head is alive.
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

    /// Selects the waiter that gets the lock next: the first in the queue, if it `fits`.
    pub(crate) fn next(&self, now: Instant, fits: impl FnOnce(&W) -> bool) -> Next<W, T, K> {
        self.queues.next(&self.name, self.id, now, fits)
    }

    /// Records that several callers hold the lock together from now on. `ours` shows waiters here
    /// how to join them.
    pub(crate) fn share(&self, ours: K) {
        if let Some(queue) = self.queues.by_name(&self.name).queue_of(self) {
            queue.known = Some((ours, true));
            queue.signs += 1;
        }
    }

    /// A view of this head for callers that hold the lock together.
    pub(crate) fn shared(&self) -> SharedHead<W, T, K> {
        SharedHead { queues: self.queues.clone(), name: self.name.clone(), id: self.id }
    }

    /// Caches the lock here until `until`, for the next call. Returns it if any caller waits.
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
            // The usual end of a free lock, so it looks the name up only once.
            let Entry::Occupied(mut queue) = by_name.queues.entry(self.name.clone()) else {
                return;
            };
            if queue.get().head != self.id {
                return;
            }
            let is_last = queue.get().selected.is_empty() && queue.get().pending.is_empty();
            if is_last && queue.get().waiting.is_empty() {
                queue.remove();
                return;
            }
            // What the store last reported stays true for now; that this process holds the lock
            // does not.
            queue.get_mut().known.take_if(|(_, ours)| *ours);
            by_name.promote_next(&self.name)
        };
        // The mutex is unlocked first: the woken waiter may lock it.
        if let Some(waiter) = waiter {
            waiter.notify();
        }
    }
}

impl<W, T, K> WaitQueues<W, T, K> {
    /// Selects the next holder after the head with this id.
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
        if let Some((since, handoffs)) = &mut queue.contended {
            if *handoffs >= count || now.saturating_duration_since(*since) >= time {
                return to_store;
            }
            *handoffs += 1;
        }
        let Some(waiter) = queue.waiting.pop_front() else { return to_store };
        queue.selected.push(waiter.id);
        Next::Waiter(SelectedWaiter { queues: self.clone(), name: name.clone(), waiter })
    }
}

impl<W, T, K> SharedHead<W, T, K> {
    /// Selects a waiter that joins the present holders: the first in the queue, if it `fits`.
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
    /// The queue of a head, unless the head was replaced.
    fn queue_of(&mut self, head: &Head<W, T, K>) -> Option<&mut WaitQueue<W, T, K>> {
        self.queue_headed_by(&head.name, head.id)
    }

    fn queue_headed_by(&mut self, name: &str, id: u64) -> Option<&mut WaitQueue<W, T, K>> {
        self.queues.get_mut(name).filter(|queue| queue.head == id)
    }

    /// Makes the first waiter the head and returns it, to be notified. Without a waiter, removes
    /// the queue.
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
