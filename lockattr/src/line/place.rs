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
pub(crate) struct Place<W, T> {
    pub(super) lines: Arc<Lines<W, T>>,
    pub(super) name: Box<str>,
    pub(super) id: u64,
    pub(super) turn: oneshot::Receiver<Turn<T>>,
}

/// Whose turn has come.
#[derive(Debug)]
pub(crate) enum Came<W, T> {
    Lock(T),
    Ask(Ahead<W, T>),
}

impl<W, T> Place<W, T> {
    /// Waits for the turn; nothing is lost if this is dropped.
    pub(crate) async fn turn(&mut self) -> Came<W, T> {
        match (&mut self.turn).await {
            Ok(turn) => self.came(turn),
            // A waiter is only taken out of the line to be told.
            Err(_) => std::future::pending().await,
        }
    }

    fn came(&self, turn: Turn<T>) -> Came<W, T> {
        match turn {
            Turn::Lock(lock) => Came::Lock(lock),
            Turn::Ask => Came::Ask(self.lines.ahead(self.name.clone())),
        }
    }
}

impl<W, T> Drop for Place<W, T> {
    fn drop(&mut self) {
        let left = {
            let mut by_name = self.lines.by_name();
            by_name.lines.get_mut(&self.name).and_then(|line| {
                let at = line.waiting.iter().position(|waiter| waiter.id == self.id)?;
                line.waiting.remove(at)
            })
        };
        // Dropped here, and not while the lines are locked: that wakes the task that waits.
        if left.is_some() {
            return;
        }
        // Its turn was told, or is being told just now: who tells it then hears that it is gone.
        self.turn.close();
        if let Ok(turn) = self.turn.try_recv() {
            drop(self.came(turn));
        }
    }
}

impl<W, T> fmt::Debug for Place<W, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("name", &self.name).finish_non_exhaustive()
    }
}
