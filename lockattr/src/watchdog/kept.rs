//! Locks that nobody holds and that are kept for a while, because the next caller may be of this
//! process too. No I/O, and no clock of its own.

use std::collections::{BTreeSet, HashMap};

use tokio::time::Instant;

use crate::guard::Owned;

/// The locks, by name, and until when each is kept.
#[derive(Default)]
pub(super) struct Kept {
    locks: HashMap<Box<str>, (Instant, Owned)>,
    ends: BTreeSet<(Instant, Box<str>)>,
}

impl Kept {
    /// Keeps a lock until `until`; what was kept under this name, if anything.
    pub(super) fn keep(&mut self, name: &str, lock: Owned, until: Instant) -> Option<Owned> {
        let before = self.take(name);
        self.ends.insert((until, name.into()));
        self.locks.insert(name.into(), (until, lock));
        before
    }

    /// Takes the lock of this name out.
    pub(super) fn take(&mut self, name: &str) -> Option<Owned> {
        let (name, (until, lock)) = self.locks.remove_entry(name)?;
        self.ends.remove(&(until, name));
        Some(lock)
    }

    /// Takes all out.
    pub(super) fn take_all(&mut self) -> Vec<Owned> {
        self.ends.clear();
        self.locks.drain().map(|(_, (_, lock))| lock).collect()
    }

    /// Takes those out that were kept long enough.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Owned> {
        let mut due = Vec::new();
        while let Some((until, _)) = self.ends.first()
            && *until <= now
            && let Some((_, name)) = self.ends.pop_first()
        {
            due.extend(self.locks.remove(&name).map(|(_, lock)| lock));
        }
        due
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.ends.first().map(|(until, _)| *until)
    }
}
