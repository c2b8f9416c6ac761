//! When to look after locks that nobody holds and that are kept for the next call. No I/O, and no
//! clock of its own.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use tokio::time::Instant;

/// The names of the locks, with a timer for each. It may be too early: a lock that is taken and
/// kept again and again does not set it each time.
#[derive(Default)]
pub(super) struct Kept {
    timers: BTreeSet<(Instant, Arc<str>)>,
    names: HashSet<Arc<str>>,
}

impl Kept {
    /// Looks after this lock at `at`, or earlier if that was said before.
    pub(super) fn look_at(&mut self, name: &str, at: Instant) {
        if !self.names.contains(name) {
            let name = Arc::<str>::from(name);
            self.timers.insert((at, name.clone()));
            self.names.insert(name);
        }
    }

    /// Takes those out that are to be looked after now.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Arc<str>> {
        let mut due = Vec::new();
        while let Some((at, _)) = self.timers.first()
            && *at <= now
            && let Some((_, name)) = self.timers.pop_first()
        {
            self.names.remove(&name);
            due.push(name);
        }
        due
    }

    /// When to look again.
    pub(super) fn next(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }
}
