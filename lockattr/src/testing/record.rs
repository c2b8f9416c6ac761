//! All acquisitions of a test, in order.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Acquisition, Outcome};
use crate::FencingToken;
use crate::platform::sync::{Mutex, MutexGuard};

#[derive(Debug, Default)]
pub(super) struct Record {
    log: Mutex<Log>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Log {
    entries: Vec<Entry>,
    timeline: Vec<String>,
}

/// An acquisition, and the times of its events.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) keys: Vec<String>,
    pub(super) template: Option<&'static str>,
    pub(super) function: Option<&'static str>,
    pub(super) service: Arc<str>,
    pub(super) nested: bool,
    pub(super) began: Instant,
    pub(super) outcome: Outcome,
    pub(super) acquired: Option<(FencingToken, Instant)>,
    pub(super) ended: Option<Instant>,
}

impl Record {
    /// Begins an entry, and returns its index.
    pub(super) fn begin(&self, entry: Entry) -> usize {
        let mut log = self.log();
        log.entries.push(entry);
        log.entries.len() - 1
    }

    pub(super) fn set_nested(&self, index: usize) {
        self.log().entries[index].nested = true;
    }

    pub(super) fn set_outcome(&self, index: usize, outcome: Outcome) {
        self.change(index, |entry| entry.set_outcome(outcome));
    }

    /// Records that the entry has its lock.
    pub(super) fn acquired(&self, index: usize, fencing: FencingToken) {
        self.change(index, |entry| {
            entry.acquired = Some((fencing, Instant::now()));
            entry.set_outcome(Outcome::Held)
        });
    }

    fn change(&self, index: usize, change: impl FnOnce(&mut Entry) -> Option<String>) {
        let mut log = self.log();
        let line = change(&mut log.entries[index]);
        log.timeline.extend(line);
        drop(log);
        self.changed.notify_waiters();
    }

    pub(super) fn note(&self, line: String) {
        self.log().timeline.push(line);
    }

    pub(super) fn timeline(&self) -> Vec<String> {
        self.log().timeline.clone()
    }

    /// The selected entries in their current state.
    pub(super) fn acquisitions(&self, is_selected: impl Fn(&Entry) -> bool) -> Vec<Acquisition> {
        let now = Instant::now();
        let log = self.log();
        log.entries.iter().filter(|entry| is_selected(entry)).map(|entry| entry.at(now)).collect()
    }

    /// Signalled at each change.
    pub(super) fn changed(&self) -> &Notify {
        &self.changed
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        // No code inside can panic half-way, so a poisoned lock is still valid.
        self.log.lock()
    }
}

impl Entry {
    /// Changes the outcome, and returns its line of the timeline.
    fn set_outcome(&mut self, outcome: Outcome) -> Option<String> {
        if self.outcome == outcome {
            return None;
        }
        self.outcome = outcome;
        if !matches!(outcome, Outcome::Asking | Outcome::Waiting | Outcome::Held) {
            self.ended = Some(Instant::now());
        }
        let again = if self.nested { " again" } else { "" };
        Some(format!("{} {outcome}{again}", self.key()))
    }

    fn key(&self) -> String {
        self.keys.join(", ")
    }

    fn at(&self, now: Instant) -> Acquisition {
        let ended = self.ended.unwrap_or(now);
        let acquired = self.acquired.map(|(_, acquired)| acquired);
        Acquisition {
            key: self.key(),
            template: self.template,
            function: self.function,
            service: self.service.to_string(),
            nested: self.nested,
            fencing_token: self.acquired.map(|(fencing, _)| fencing),
            waited: acquired.unwrap_or(ended) - self.began,
            held: acquired.map(|acquired| ended - acquired),
            outcome: self.outcome,
        }
    }
}
