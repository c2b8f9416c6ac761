//! When to check a lock that is cached for the next call, or that readers hold together. No I/O, and no
//! clock of its own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tokio::time::Instant;

/// The names of the locks, with one timer for each. The timer may fire too early: a request for a later
/// check does not move it.
#[derive(Default)]
pub(super) struct RecheckTimers {
    timers: BTreeSet<(Instant, Arc<str>)>,
    names: HashMap<Arc<str>, Instant>,
}

impl RecheckTimers {
    /// Schedules a check of this lock for `at`, unless an earlier one is scheduled.
    pub(super) fn recheck_at(&mut self, name: &str, at: Instant) {
        let name = match self.names.get_key_value(name) {
            Some((_, before)) if *before <= at => return,
            Some((name, before)) => {
                let name = name.clone();
                self.timers.remove(&(*before, name.clone()));
                name
            }
            None => name.into(),
        };
        self.timers.insert((at, name.clone()));
        self.names.insert(name, at);
    }

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

    pub(super) fn next(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::RecheckTimers;

    const LATER: Duration = Duration::from_secs(1);

    /// Red without: the check in `recheck_at` for an earlier timer, or the comparison in `due`.
    #[test]
    fn a_kept_lock_is_looked_after_once_at_the_first_time_that_was_said() {
        let mut timers = RecheckTimers::default();
        let at = Instant::now();
        assert_eq!(timers.next(), None);
        timers.recheck_at("b", at + LATER);
        timers.recheck_at("a", at + LATER);
        timers.recheck_at("a", at);
        timers.recheck_at("a", at + LATER);
        assert_eq!(timers.next(), Some(at));
        assert!(timers.due(at - Duration::from_nanos(1)).is_empty());
        assert_eq!(timers.due(at).join(" "), "a");
        assert_eq!((timers.due(at), timers.next()), (Vec::new(), Some(at + LATER)));
        timers.recheck_at("a", at + LATER);
        assert_eq!(timers.due(at + LATER).join(" "), "a b");
        assert_eq!(timers.next(), None);
    }
}
