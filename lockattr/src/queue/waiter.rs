//! Waiters behind the head of a wait queue, and how they are notified of a hand-off.

use std::fmt;

use super::{Head, Name, WaitQueues};
use crate::platform::sync::{Arc, oneshot};

/// A waiter, as its queue stores it.
pub(super) struct QueuedWaiter<W> {
    pub(super) id: u64,
    pub(super) wants: W,
    /// Notifies the waiter that a hand-off is pending.
    pub(super) sender: oneshot::Sender<()>,
}

impl<W> QueuedWaiter<W> {
    /// Notifies the waiter that a hand-off is pending. If the waiter is gone, it has passed the
    /// hand-off on.
    pub(super) fn notify(self) {
        self.sender.send(()).ok();
    }
}

/// A waiter, as its caller holds it. Dropping it leaves the queue and passes on what it was handed.
pub(crate) struct Waiter<W, T, K = ()> {
    pub(super) queues: Arc<WaitQueues<W, T, K>>,
    pub(super) name: Name,
    pub(super) id: u64,
    pub(super) wants: W,
    pub(super) receiver: oneshot::Receiver<()>,
}

#[derive(Debug)]
pub(crate) enum Received<W, T, K = ()> {
    Lock(T),
    Head(Head<W, T, K>),
    /// The caller sends a request in parallel with the head, as a companion of this claim. If that
    /// does not acquire the lock, it rejoins the queue with this id.
    Probe(u64, Option<K>),
}

impl<W: Clone, T, K> Waiter<W, T, K> {
    /// Waits for a hand-off; nothing is lost if this is dropped.
    pub(crate) async fn received(&mut self) -> Received<W, T, K> {
        loop {
            if (&mut self.receiver).await.is_err() {
                // A waiter is taken out of the queue only to be notified.
                std::future::pending::<()>().await;
            }
            if let Some(received) = self.pick_up() {
                return received;
            }
        }
    }

    /// Its id: a waiter with a smaller id is ahead.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// What is known about the lock in this process, or a receiver that is notified when that changes.
    pub(crate) fn known(&self) -> Result<K, oneshot::Receiver<()>>
    where
        K: Clone,
    {
        let (sender, changed) = oneshot::channel();
        if let Some(queue) = self.queues.by_name(&self.name).queues.get_mut(&self.name) {
            if let Some((known, _)) = &queue.known {
                return Ok(known.clone());
            }
            queue.known_waiters.push(sender);
        }
        Err(changed)
    }

    /// Picks the hand-off up. If it was pending for too long and was passed on, the waiter rejoins
    /// the queue at the front, or becomes the head of an empty one.
    fn pick_up(&mut self) -> Option<Received<W, T, K>> {
        let queues = self.queues.clone();
        let mut by_name = queues.by_name(&self.name);
        if let Some(granted) = by_name.probes.remove(&self.id) {
            return Some(Received::Probe(self.id, Some(granted)));
        }
        if let Some(handoff) = by_name.pick_up(&self.name, self.id) {
            return Some(queues.received(self.name.clone(), handoff));
        }
        let cached = match by_name.queues.get_mut(&self.name) {
            None => None,
            Some(queue) if queue.cached.is_some() => queue.cached.take(),
            Some(queue) if queue.has_no_head() => None,
            Some(_) => {
                let (sender, receiver) = oneshot::channel();
                let id = by_name.next_id();
                (self.id, self.receiver) = (id, receiver);
                let waiter = QueuedWaiter { id, wants: self.wants.clone(), sender };
                if let Some(queue) = by_name.queues.get_mut(&self.name) {
                    queue.waiting.push_front(waiter);
                }
                return None;
            }
        };
        let head = queues.head(&mut by_name, &self.name);
        // The mutex is unlocked first: dropping the cached lock may lock it. This waiter may want
        // other options than the cached lock has.
        drop(by_name);
        drop(cached);
        Some(Received::Head(head))
    }
}

impl<W, T, K> Drop for Waiter<W, T, K> {
    fn drop(&mut self) {
        let mut by_name = self.queues.by_name(&self.name);
        by_name.probes.remove(&self.id);
        let Some(queue) = by_name.queues.get_mut(&self.name) else { return };
        if let Some(at) = queue.waiting.iter().position(|waiter| waiter.id == self.id) {
            let left = queue.waiting.remove(at);
            // The mutex is unlocked first: dropping the sender wakes the waiting task.
            drop(by_name);
            drop(left);
            return;
        }
        // A holder that is about to hand the lock off then sees that this waiter is gone.
        if queue.unselect(self.id) {
            by_name.remove_if_empty(&self.name);
        }
        if let Some(handoff) = by_name.pick_up(&self.name, self.id) {
            drop(by_name);
            drop(self.queues.received(self.name.clone(), handoff));
        }
    }
}

impl<W, T, K> fmt::Debug for Waiter<W, T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("name", &self.name).finish_non_exhaustive()
    }
}
