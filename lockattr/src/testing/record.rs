//! All acquisitions of a test, in order.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Acquisition, Outcome};
use crate::FencingToken;

#[derive(Debug, Default)]
pub(super) struct Record {
    pages: Mutex<Log>,
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
    /// Begins an entry, and returns its number.
    pub(super) fn begin(&self, entry: Entry) -> usize {
        let mut pages = self.pages();
        pages.entries.push(entry);
        pages.entries.len() - 1
    }

    pub(super) fn is_nested(&self, number: usize) {
        self.pages().entries[number].nested = true;
    }

    pub(super) fn set_outcome(&self, number: usize, outcome: Outcome) {
        self.change(number, |entry| entry.set_outcome(outcome));
    }

    /// Records that the entry has its lock.
    pub(super) fn acquired(&self, number: usize, fencing: FencingToken) {
        self.change(number, |entry| {
            entry.acquired = Some((fencing, Instant::now()));
            entry.set_outcome(Outcome::Held)
        });
    }

    fn change(&self, number: usize, change: impl FnOnce(&mut Entry) -> Option<String>) {
        let mut pages = self.pages();
        let told = change(&mut pages.entries[number]);
        pages.timeline.extend(told);
        drop(pages);
        self.changed.notify_waiters();
    }

    pub(super) fn note(&self, line: String) {
        self.pages().timeline.push(line);
    }

    pub(super) fn timeline(&self) -> Vec<String> {
        self.pages().timeline.clone()
    }

    /// The selected entries in their current state.
    pub(super) fn acquisitions(&self, counts: impl Fn(&Entry) -> bool) -> Vec<Acquisition> {
        let now = Instant::now();
        let pages = self.pages();
        pages.entries.iter().filter(|entry| counts(entry)).map(|entry| entry.at(now)).collect()
    }

    /// Signalled at each change.
    pub(super) fn changed(&self) -> &Notify {
        &self.changed
    }

    fn pages(&self) -> MutexGuard<'_, Log> {
        // No code inside can panic half-way, so a poisoned lock is still valid.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
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
