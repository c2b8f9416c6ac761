//! Standing behind others of this process, and being told that the turn has come.

use std::fmt;

use super::{Ahead, ByName, Line, Lines};
use crate::sync::{Arc, oneshot};

/// One who stands behind.
pub(super) struct Waiter<W> {
    pub(super) id: u64,
    pub(super) wants: W,
    /// Told that its turn lies ready.
    pub(super) turn: oneshot::Sender<()>,
}

impl<W> Waiter<W> {
    /// Tells it that its turn lies ready. One that is gone has passed it on.
    pub(super) fn tell(self) {
        self.turn.send(()).ok();
    }
}

/// A place behind others. Dropped, it is given up, together with what was handed there.
pub(crate) struct Place<W, T> {
    pub(super) lines: Arc<Lines<W, T>>,
    pub(super) name: Box<str>,
    pub(super) id: u64,
    pub(super) wants: W,
    pub(super) turn: oneshot::Receiver<()>,
}

/// Whose turn has come.
#[derive(Debug)]
pub(crate) enum Came<W, T> {
    Lock(T),
    Ask(Ahead<W, T>),
}

impl<W: Clone, T> Place<W, T> {
    /// Waits for the turn; nothing is lost if this is dropped.
    pub(crate) async fn turn(&mut self) -> Came<W, T> {
        loop {
            if (&mut self.turn).await.is_err() {
                // A waiter is only taken out of the line to be told.
                std::future::pending::<()>().await;
            }
            if let Some(came) = self.pick_up() {
                return came;
            }
        }
    }

    /// Picks the turn up. If it went on to another waiter because it lay there for too long, this one
    /// waits again, in front of all that came later, unless all of them are gone.
    fn pick_up(&mut self) -> Option<Came<W, T>> {
        let lines = self.lines.clone();
        let mut by_name = lines.by_name();
        if let Some(turn) = by_name.pick_up(&self.name, self.id) {
            return Some(lines.came(self.name.clone(), turn));
        }
        let ByName { lines: all, last_id, .. } = &mut *by_name;
        let Some(line) = all.get_mut(&self.name) else {
            all.insert(self.name.clone(), Line::new());
            return Some(Came::Ask(lines.ahead(self.name.clone())));
        };
        if let Some(kept) = line.kept.take() {
            let ahead = lines.ahead(self.name.clone());
            // Not while the lines are locked. It was kept for a call on other terms.
            drop(by_name);
            drop(kept);
            return Some(Came::Ask(ahead));
        }
        *last_id += 1;
        let (sender, turn) = oneshot::channel();
        (self.id, self.turn) = (*last_id, turn);
        let waiter = Waiter { id: self.id, wants: self.wants.clone(), turn: sender };
        line.waiting.push_front(waiter);
        None
    }
}

impl<W, T> Drop for Place<W, T> {
    fn drop(&mut self) {
        let mut by_name = self.lines.by_name();
        let Some(line) = by_name.lines.get_mut(&self.name) else { return };
        if let Some(at) = line.waiting.iter().position(|waiter| waiter.id == self.id) {
            line.waiting.remove(at);
            return;
        }
        // A holder that is about to hand the lock over then sees that this waiter is gone.
        line.called.take_if(|called| *called == self.id);
        if let Some(turn) = by_name.pick_up(&self.name, self.id) {
            drop(by_name);
            drop(self.lines.came(self.name.clone(), turn));
        }
    }
}

impl<W, T> fmt::Debug for Place<W, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("name", &self.name).finish_non_exhaustive()
    }
}
