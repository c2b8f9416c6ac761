//! Standing behind others of this process, and being told that the turn has come.

use std::fmt;

use super::{Ahead, Lines};
use crate::sync::{Arc, oneshot};

/// One who stands behind.
pub(crate) struct Waiter<W, T> {
    pub(super) id: u64,
    pub(super) wants: W,
    pub(super) turn: oneshot::Sender<Turn<T>>,
}

/// What a waiter's turn brings.
#[derive(Debug)]
pub(crate) enum Turn<T> {
    /// The lock, handed over.
    Lock(T),
    /// The place of the one ahead, who goes to ask the store.
    Ask,
    /// A question to the store beside the asker's, because the lock can be shared.
    Scout,
}

impl<W, T> Waiter<W, T> {
    pub(crate) fn wants(&self) -> &W {
        &self.wants
    }

    /// Hands it over; gives it back if the waiter is gone.
    pub(crate) fn hand(self, lock: T) -> Result<(), T> {
        match self.turn.send(Turn::Lock(lock)) {
            Err(Turn::Lock(lock)) => Err(lock),
            _ => Ok(()),
        }
    }
}

/// A place behind others. Dropped, it is given up, together with what was handed there.
pub(crate) struct Place<W, T, K = ()> {
    pub(super) lines: Arc<Lines<W, T, K>>,
    pub(super) name: Box<str>,
    pub(super) id: u64,
    pub(super) turn: oneshot::Receiver<Turn<T>>,
}

/// Whose turn has come.
#[derive(Debug)]
pub(crate) enum Came<W, T, K = ()> {
    Lock(T),
    Ask(Ahead<W, T, K>),
    /// It asks beside the asker, and comes back with this number if it is refused.
    Scout(u64),
}

impl<W, T, K> Place<W, T, K> {
    /// Waits for the turn; nothing is lost if this is dropped.
    pub(crate) async fn turn(&mut self) -> Came<W, T, K> {
        match (&mut self.turn).await {
            Ok(turn) => self.came(turn),
            // A waiter is only taken out of the line to be told.
            Err(_) => std::future::pending().await,
        }
    }

    /// What is known of the lock in this process; if nothing is, what tells when that changes.
    pub(crate) fn known(&self) -> Result<K, oneshot::Receiver<()>>
    where
        K: Clone,
    {
        let (tells, changed) = oneshot::channel();
        if let Some(line) = self.lines.by_name().lines.get_mut(&self.name) {
            if let Some((known, _)) = &line.known {
                return Ok(known.clone());
            }
            line.curious.push(tells);
        }
        Err(changed)
    }

    fn came(&self, turn: Turn<T>) -> Came<W, T, K> {
        match turn {
            Turn::Lock(lock) => Came::Lock(lock),
            Turn::Ask => Came::Ask(self.lines.ahead(self.name.clone())),
            Turn::Scout => Came::Scout(self.id),
        }
    }
}

impl<W, T, K> Drop for Place<W, T, K> {
    fn drop(&mut self) {
        if let Some(line) = self.lines.by_name().lines.get_mut(&self.name)
            && let Some(at) = line.waiting.iter().position(|waiter| waiter.id == self.id)
        {
            line.waiting.remove(at);
            return;
        }
        // Its turn was told, or is being told just now: who tells it then hears that it is gone.
        self.turn.close();
        if let Ok(turn) = self.turn.try_recv() {
            drop(self.came(turn));
        }
    }
}

impl<W, T, K> fmt::Debug for Place<W, T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("name", &self.name).finish_non_exhaustive()
    }
}
