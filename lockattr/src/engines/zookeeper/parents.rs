//! The nodes of locks that this store has used a moment ago, and which of them to remove. No I/O,
//! and no clock of its own.
//!
//! The servers remove empty containers, but at most 10,000 a minute. A service that locks more new
//! keys would fill their memory. So a release also removes the lock's node: at once if the lock is
//! rarely used, which also serves a process that ends right afterwards; after a pause if it is used
//! often, because the next acquire would have to make the node again. The servers refuse to remove a
//! node with an entry, so no waiter loses its entry.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::platform::sync::{Mutex, MutexGuard};

/// How long a node stays unused before it is removed, if it was used twice within this time.
pub(super) const IDLE: Duration = Duration::from_secs(1);

/// The nodes that were used within [`IDLE`], and their number is therefore limited.
#[derive(Debug, Default)]
pub(super) struct Parents(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    recent: HashMap<Box<str>, Parent>,
    /// Each of them once, by when it was last looked at.
    in_turn: VecDeque<(Instant, Box<str>)>,
    /// Whether a task removes them in time.
    has_sweeper: bool,
    misses_one_above: bool,
}

#[derive(Debug)]
struct Parent {
    used_at: Instant,
    exists: bool,
    is_hot: bool,
    /// Whether a claim of this store left it last.
    is_left: bool,
}

/// What to do with the node of a lock whose entry is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// Remove it with the entry.
    Now,
    /// It is [due](Parents::due) later.
    Later,
}

impl Parents {
    /// Whether this node exists, as far as this store knows.
    pub(super) fn exists(&self, path: &str) -> bool {
        self.state().recent.get(path).is_some_and(|parent| parent.exists)
    }

    /// Whether a node above those of the locks may be missing.
    pub(super) fn misses_one_above(&self) -> bool {
        self.state().misses_one_above
    }

    /// Notes that an entry was made below each of these nodes.
    pub(super) fn entered(&self, paths: &[String], now: Instant) {
        let mut state = self.state();
        state.misses_one_above = false;
        for path in paths {
            let known = state.recent.contains_key(path.as_str());
            let parent = state.parent(path, now);
            parent.is_hot |= known;
            (parent.used_at, parent.exists, parent.is_left) = (now, true, false);
        }
    }

    /// Notes that this node exists: another process uses it.
    pub(super) fn found(&self, path: &str, now: Instant) {
        self.state().parent(path, now).exists = true;
    }

    /// Notes that one of these nodes is gone, or one above them.
    pub(super) fn are_gone(&self, paths: &[String], or_above: bool) {
        let mut state = self.state();
        state.misses_one_above |= or_above;
        for path in paths {
            if let Some(parent) = state.recent.get_mut(path.as_str()) {
                parent.exists = false;
            }
        }
    }

    /// Notes that an entry below this node is about to be removed.
    pub(super) fn left(&self, path: &str, now: Instant) -> Removal {
        let mut state = self.state();
        let parent = state.parent(path, now);
        let is_long_ago = now >= parent.used_at + IDLE;
        (parent.used_at, parent.is_left) = (now, true);
        if parent.is_hot && !is_long_ago {
            return Removal::Later;
        }
        (parent.exists, parent.is_left) = (false, false);
        Removal::Now
    }

    /// Whether a task must be started that removes what is [due](Self::due).
    pub(super) fn needs_sweeper(&self) -> bool {
        let mut state = self.state();
        !std::mem::replace(&mut state.has_sweeper, true)
    }

    /// Returns the nodes to remove, and when to look again; `None` if there are none, and the task
    /// ends.
    pub(super) fn due(&self, now: Instant) -> (Vec<Box<str>>, Option<Instant>) {
        let (mut state, mut due) = (self.state(), Vec::new());
        while state.in_turn.front().is_some_and(|(at, _)| *at + IDLE <= now)
            && let Some((_, path)) = state.in_turn.pop_front()
        {
            let Some(parent) = state.recent.get(&path) else { continue };
            let used_at = parent.used_at;
            if used_at + IDLE > now {
                state.in_turn.push_back((used_at, path));
                continue;
            }
            if state.recent.remove(&path).is_some_and(|parent| parent.is_left) {
                due.push(path);
            }
        }
        let next = state.in_turn.front().map(|(at, _)| *at + IDLE);
        state.has_sweeper = next.is_some() || !due.is_empty();
        (due, next)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    fn parent(&mut self, path: &str, now: Instant) -> &mut Parent {
        if !self.recent.contains_key(path) {
            self.in_turn.push_back((now, path.into()));
        }
        let parent = Parent { used_at: now, exists: false, is_hot: false, is_left: false };
        self.recent.entry(path.into()).or_insert(parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_used_once_is_removed_at_once_and_another_after_a_pause() {
        let (parents, now) = (Parents::default(), Instant::now());
        let at = |tenths: u32| now + IDLE / 10 * tenths;
        assert!(!parents.exists("a"));
        parents.entered(&["a".into()], at(0));
        assert!(parents.exists("a"));
        assert_eq!(parents.left("a", at(1)), Removal::Now);
        assert!(!parents.exists("a"));
        for tenths in [2, 9, 18] {
            parents.entered(&["a".into()], at(tenths));
            assert_eq!(parents.left("a", at(tenths)), Removal::Later);
            assert!(parents.exists("a"));
            assert!(parents.due(at(tenths)).0.is_empty());
        }
        let (due, next) = parents.due(at(18));
        assert_eq!((due, next), (vec![], Some(at(28))));
        assert_eq!(parents.due(at(28)), (vec!["a".into()], None));
        assert!(!parents.exists("a"));
    }

    #[test]
    fn what_a_transaction_says_of_a_node_is_remembered() {
        let (parents, now) = (Parents::default(), Instant::now());
        let a = [String::from("a")];
        parents.found("a", now);
        assert!(parents.exists("a"));
        parents.are_gone(&a, false);
        assert_eq!((parents.exists("a"), parents.misses_one_above()), (false, false));
        parents.are_gone(&a, true);
        assert!(parents.misses_one_above());
        parents.entered(&a, now);
        assert_eq!((parents.exists("a"), parents.misses_one_above()), (true, false));
        // Another process uses it, too.
        assert_eq!(parents.left("a", now), Removal::Later);
    }

    #[test]
    fn a_node_with_a_holder_is_not_removed_and_forgotten() {
        let (parents, now) = (Parents::default(), Instant::now());
        for _ in 0..2 {
            parents.entered(&["a".into()], now);
        }
        assert_eq!(parents.due(now + IDLE), (vec![], None));
        assert_eq!(parents.left("a", now + IDLE * 60), Removal::Now);
        assert_eq!(parents.due(now + IDLE * 61), (vec![], None));
        assert!(parents.0.lock().recent.is_empty(), "memory");
    }
}
