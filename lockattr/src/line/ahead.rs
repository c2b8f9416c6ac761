//! Being ahead of all others of this process: asking the store, or having the lock.

use std::fmt;

use super::place::{Turn, Waiter};
use super::{Limits, Lines};
use crate::sync::{Arc, Instant, oneshot};

/// Who is next when the one ahead is done.
pub(crate) enum Next<W, T> {
    /// This one gets the lock: its turn is to be told.
    Hand(Waiter<W, T>),
    /// Nobody who could have it from here; the next one, if any, asks the store.
    Nobody {
        /// Whether another process waits.
        wanted: bool,
    },
}

/// Being ahead: asking the store, or having the lock. Dropped, the next one is ahead.
pub(crate) struct Ahead<W, T, K = ()> {
    pub(super) lines: Arc<Lines<W, T, K>>,
    pub(super) name: Box<str>,
    pub(super) left: bool,
}

impl<W, T, K> Ahead<W, T, K> {
    /// The store granted the lock, and said whether others waited then; of those that came since, this
    /// process may have heard before. `ours` is what waiters here are to know of it.
    pub(crate) fn granted(&self, wanted: bool, ours: K, now: Instant) {
        let curious = {
            let lines = &mut self.lines.by_name().lines;
            let Some(line) = lines.get_mut(&self.name) else { return };
            if wanted || line.wanted.is_some() {
                line.wanted = Some((now, 0));
            }
            line.known = Some((ours, true));
            std::mem::take(&mut line.curious)
        };
        wake(curious);
    }

    /// The store answered that another process has the lock, or did not answer.
    pub(crate) fn learned(&self, known: K) {
        let curious = {
            let lines = &mut self.lines.by_name().lines;
            let Some(line) = lines.get_mut(&self.name) else { return };
            line.known = Some((known, false));
            std::mem::take(&mut line.curious)
        };
        wake(curious);
    }

    /// What this process knows of the lock, from the asker before.
    pub(crate) fn known(&self) -> Option<K>
    where
        K: Clone,
    {
        let lines = &self.lines.by_name().lines;
        lines.get(&self.name)?.known.as_ref().map(|(known, _)| known.clone())
    }

    /// Who gets the lock next, if `fits` says that the first in line can have it from here.
    pub(crate) fn next(&self, now: Instant, fits: impl FnOnce(&W) -> bool) -> Next<W, T> {
        let mut by_name = self.lines.by_name();
        let Some(line) = by_name.lines.get_mut(&self.name) else {
            return Next::Nobody { wanted: false };
        };
        let nobody = Next::Nobody { wanted: line.wanted.is_some() };
        if !line.waiting.front().is_some_and(|waiter| fits(&waiter.wants)) {
            return nobody;
        }
        let Limits { count, time } = self.lines.limits;
        if let Some((since, passed)) = &mut line.wanted {
            if *passed >= count || now.saturating_duration_since(*since) >= time {
                return nobody;
            }
            *passed += 1;
        }
        line.waiting.pop_front().map_or(nobody, Next::Hand)
    }

    /// Leaves the lock here until `until`, for the next call; gives it back if somebody waits.
    pub(crate) fn keep(mut self, lock: T, until: Instant) -> Result<(), T> {
        let lines = self.lines.clone();
        let mut by_name = lines.by_name();
        match by_name.lines.get_mut(&self.name) {
            Some(line) if line.waiting.is_empty() && line.wanted.is_none() => {
                line.kept = Some(Box::new((lock, until)));
                self.left = true;
                Ok(())
            }
            _ => {
                // Not while the lines are locked: the place is given up with `self`.
                drop(by_name);
                Err(lock)
            }
        }
    }

    /// The next one asks the store.
    fn leave(&mut self) {
        self.left = true;
        loop {
            let waiter = {
                let lines = &mut self.lines.by_name().lines;
                let Some(line) = lines.get_mut(&self.name) else { return };
                line.wanted = None;
                // What the store last said of it stays true for now; that it was ours does not.
                line.known.take_if(|(_, ours)| *ours);
                let Some(waiter) = line.waiting.pop_front() else {
                    lines.remove(&self.name);
                    return;
                };
                waiter
            };
            // Not while the lines are locked: whoever is woken may want them.
            if waiter.turn.send(Turn::Ask).is_ok() {
                return;
            }
        }
    }
}

impl<W, T, K> Drop for Ahead<W, T, K> {
    fn drop(&mut self) {
        if !self.left {
            self.leave();
        }
    }
}

impl<W, T, K> fmt::Debug for Ahead<W, T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Not while the lines are locked: a waiter that is woken may want them.
fn wake(curious: Vec<oneshot::Sender<()>>) {
    for one in curious {
        // One that has gone needs to know nothing.
        let _gone: Result<(), ()> = one.send(());
    }
}
