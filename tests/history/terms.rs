//! Judges the terms of leaders, by what a resource accepted from them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// One step of a term. The resource writes them down one after the other, so their order is the order in which they
/// happened, whatever any clock says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermEvent {
    /// The number of the process, which no other process of the history has, restarts included.
    pub process: u32,
    /// The number of the term: its fencing token.
    pub term: u64,
    /// What happened.
    pub step: TermStep,
}

/// What happened in a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TermStep {
    /// The body began.
    Began,
    /// The resource accepted a write.
    Wrote,
    /// The resource refused a write, because a later term had written.
    Refused {
        /// Whether the leader still held its lease, by its own clock, *after* it was refused.
        held: bool,
    },
    /// The body ended. A process that is killed records nothing.
    Ended,
}

/// The rule that a history of terms breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TermKind {
    /// The resource accepted a write of a term after one of a later term.
    WroteAfterLater,
    /// A term began twice: in two processes, or again in one.
    BeganTwice,
    /// A process led in a term that is not later than its last one.
    WentBack,
    /// A leader that held its lease was refused, so another led at the same time.
    LedBesideAnother,
    /// A leader wrote when its body had ended, or without a body.
    WroteOutsideTerm,
    /// A process began a term while it led in another.
    BeganInsideTerm,
}

/// A broken rule, with the events that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermViolation {
    /// The broken rule.
    pub kind: TermKind,
    /// The positions of the events in the history, with the events.
    pub events: Vec<(usize, TermEvent)>,
}

/// The counts of a history without violations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JudgedTerms {
    /// Terms that began.
    pub terms: u64,
    /// Processes that led.
    pub leaders: u64,
    /// Accepted writes.
    pub wrote: u64,
    /// Refused writes.
    pub refused: u64,
    /// Terms whose bodies ended while their process lived.
    pub ended: u64,
}

/// Checks the history of one key. Accepted writes of two terms never interleave, and their numbers grow; each term has
/// one leader, which writes only while its body runs; and no leader is refused while it holds its lease.
///
/// # Errors
///
/// All violations, in the order of the history.
pub fn check_terms(events: &[TermEvent]) -> Result<JudgedTerms, Vec<TermViolation>> {
    let mut terms = Terms::default();
    for (at, event) in events.iter().enumerate() {
        terms.add(at, event);
    }
    if terms.found.is_empty() {
        let leaders = terms.last_of.len() as u64;
        return Ok(JudgedTerms { leaders, ..terms.judged });
    }
    let violation = |(kind, positions): (TermKind, BTreeSet<usize>)| TermViolation {
        kind,
        events: positions.into_iter().map(|at| (at, events[at].clone())).collect(),
    };
    Err(terms.found.into_iter().map(violation).collect())
}

/// The history so far.
#[derive(Default)]
struct Terms {
    judged: JudgedTerms,
    /// The first event of each term.
    began: BTreeMap<u64, usize>,
    /// Where the last term of each process began, and its number.
    last_of: BTreeMap<u32, (usize, u64)>,
    /// The terms whose bodies run, with their leaders.
    open: BTreeSet<(u32, u64)>,
    /// Where each term ended.
    ended: BTreeMap<(u32, u64), usize>,
    /// The accepted write of the latest term, and that term.
    newest: Option<(usize, u64)>,
    found: Vec<(TermKind, BTreeSet<usize>)>,
}

impl Terms {
    fn add(&mut self, at: usize, event: &TermEvent) {
        let leader = (event.process, event.term);
        match event.step {
            TermStep::Began => self.begin(at, leader),
            TermStep::Wrote => {
                self.judged.wrote += 1;
                self.expect_inside(at, leader);
                match self.newest {
                    Some((later, term)) if term > event.term => {
                        self.find(TermKind::WroteAfterLater, [later, at]);
                    }
                    _ => self.newest = Some((at, event.term)),
                }
            }
            TermStep::Refused { held } => {
                self.judged.refused += 1;
                self.expect_inside(at, leader);
                if held {
                    let by = self.newest.map(|(later, _)| later);
                    self.find(TermKind::LedBesideAnother, by.into_iter().chain([at]));
                }
            }
            TermStep::Ended => {
                self.judged.ended += 1;
                self.expect_inside(at, leader);
                self.open.remove(&leader);
                self.ended.insert(leader, at);
            }
        }
    }

    fn begin(&mut self, at: usize, (process, term): (u32, u64)) {
        self.judged.terms += 1;
        if let Some(before) = self.began.insert(term, at) {
            self.find(TermKind::BeganTwice, [before, at]);
        }
        if let Some((before, last)) = self.last_of.insert(process, (at, term)) {
            if self.open.contains(&(process, last)) {
                self.find(TermKind::BeganInsideTerm, [before, at]);
            }
            if last > term {
                self.find(TermKind::WentBack, [before, at]);
            }
        }
        self.open.insert((process, term));
    }

    fn expect_inside(&mut self, at: usize, leader: (u32, u64)) {
        if !self.open.contains(&leader) {
            let ended = self.ended.get(&leader).copied();
            self.find(TermKind::WroteOutsideTerm, ended.into_iter().chain([at]));
        }
    }

    fn find(&mut self, kind: TermKind, events: impl IntoIterator<Item = usize>) {
        self.found.push((kind, events.into_iter().collect()));
    }
}

impl TermEvent {
    /// Returns the event as a line of a file, with its end.
    ///
    /// # Panics
    ///
    /// Never: an event is plain data.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("an event is plain data") + "\n"
    }

    /// Reads a line of a file; `None` if it is not whole.
    #[must_use]
    pub fn from_line(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

impl fmt::Display for TermViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            TermKind::WroteAfterLater => "a write was accepted after one of a later term",
            TermKind::BeganTwice => "a term began twice",
            TermKind::WentBack => "a process led in an earlier term",
            TermKind::LedBesideAnother => "a leader that held its lease was refused",
            TermKind::WroteOutsideTerm => "a leader wrote outside its term",
            TermKind::BeganInsideTerm => "a term began inside another of its process",
        })?;
        for (at, TermEvent { process, term, step }) in &self.events {
            write!(f, "\n  event {at}: process {process}, term {term}: {step:?}")?;
        }
        Ok(())
    }
}
