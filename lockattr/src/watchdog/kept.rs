//! Locks that nobody holds and that are kept for a while, because the next caller may be of this
//! process too. No I/O, and no clock of its own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tokio::time::Instant;

use crate::guard::Owned;

/// The locks, by name.
#[derive(Default)]
pub(super) struct Kept {
    locks: HashMap<Arc<str>, Entry>,
    /// When to look at each again, which may be too early: a lock that is taken and kept again
    /// and again does not set its timer each time.
    timers: BTreeSet<(Instant, Arc<str>)>,
}

/// A name with a timer.
struct Entry {
    /// Nothing while somebody holds it.
    lock: Option<Owned>,
    until: Instant,
}

impl Kept {
    /// Keeps a lock until `until`; what was kept under this name, if anything.
    pub(super) fn keep(&mut self, name: &str, lock: Owned, until: Instant) -> Option<Owned> {
        if let Some(entry) = self.locks.get_mut(name) {
            entry.until = until;
            return entry.lock.replace(lock);
        }
        let name = Arc::<str>::from(name);
        self.timers.insert((until, name.clone()));
        self.locks.insert(name, Entry { lock: Some(lock), until });
        None
    }

    /// Takes the lock of this name out.
    pub(super) fn take(&mut self, name: &str) -> Option<Owned> {
        self.locks.get_mut(name)?.lock.take()
    }

    /// Takes all out.
    pub(super) fn take_all(&mut self) -> Vec<Owned> {
        self.timers.clear();
        self.locks.drain().filter_map(|(_, entry)| entry.lock).collect()
    }

    /// Takes those out that were kept long enough.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Owned> {
        let mut due = Vec::new();
        while let Some((timer, _)) = self.timers.first()
            && *timer <= now
            && let Some((_, name)) = self.timers.pop_first()
        {
            match self.locks.get(&name) {
                Some(entry) if entry.until > now => {
                    self.timers.insert((entry.until, name));
                }
                _ => due.extend(self.locks.remove(&name).and_then(|entry| entry.lock)),
            }
        }
        due
    }

    /// When to look again.
    pub(super) fn next(&self) -> Option<Instant> {
        self.timers.first().map(|(timer, _)| *timer)
    }
}
