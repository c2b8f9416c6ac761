//! Being ahead of all others of this process: asking the store, or having the lock.

use std::fmt;

use super::handed::{Called, Turn};
use super::{Limits, Lines};
use crate::sync::{Arc, Instant};

/// Who is next when the one ahead is done.
pub(crate) enum Next<W, T> {
    /// This one gets the lock: its turn is to be told.
    Hand(Called<W, T>),
    /// Nobody who could have it from here; the next one, if any, asks the store.
    Nobody {
        /// Whether another process waits.
        wanted: bool,
    },
}

/// Being ahead: asking the store, or having the lock. Dropped, the next one is ahead.
pub(crate) struct Ahead<W, T> {
    pub(super) lines: Arc<Lines<W, T>>,
    pub(super) name: Box<str>,
    pub(super) left: bool,
}

impl<W, T> Ahead<W, T> {
    /// The store granted the lock, and said whether others waited then. Who came since may have been
    /// told of before this is.
    pub(crate) fn granted(&self, wanted: bool, now: Instant) {
        if let Some(line) = self.lines.by_name().lines.get_mut(&self.name)
            && (wanted || line.wanted.is_some())
        {
            line.wanted = Some((now, 0));
        }
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
        let Some(waiter) = line.waiting.pop_front() else { return nobody };
        line.called = Some(waiter.id);
        Next::Hand(Called { lines: self.lines.clone(), name: self.name.clone(), waiter })
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
        let waiter = {
            let mut by_name = self.lines.by_name();
            let Some(line) = by_name.lines.get_mut(&self.name) else { return };
            line.wanted = None;
            let Some(waiter) = line.waiting.pop_front() else {
                by_name.lines.remove(&self.name);
                return;
            };
            by_name.put_ready(&self.name, waiter.id, Turn::Ask);
            waiter
        };
        // Not while the lines are locked: the waiter that is woken may want them.
        waiter.tell();
    }
}

impl<W, T> Drop for Ahead<W, T> {
    fn drop(&mut self) {
        if !self.left {
            self.leave();
        }
    }
}

impl<W, T> fmt::Debug for Ahead<W, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").field("name", &self.name).finish_non_exhaustive()
    }
}
