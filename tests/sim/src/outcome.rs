//! The result of a world, and its judgement.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::time::Duration;

use lockattr_history::{Event, Judged, JudgedTerms, Step, TermEvent, check, check_terms};

use crate::leaderless::Replaced;
use crate::plan::{KINDS, Topology};

/// The result of a world.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// Its servers.
    pub topology: Topology,
    /// What its processes did, in order.
    pub history: Vec<Event>,
    /// What leaders wrote, by the keys for which they led, in the order in which the resource saw it.
    pub terms: BTreeMap<&'static str, Vec<TermEvent>>,
    /// The leaders that were replaced in time.
    pub replaced: Replaced,
    /// Violations that no history shows.
    pub findings: Vec<String>,
    /// How often the resources were written.
    pub written: u64,
    /// Its simulated time.
    pub simulated: Duration,
    /// The faults, by kind.
    pub injected: [u64; KINDS.len()],
}

/// The counts of a world without violations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verdict {
    /// Those of its history.
    pub locks: Judged,
    /// Those of its leaders, of all keys.
    pub terms: JudgedTerms,
}

/// How many violations a report lists; the others follow from the first.
const LISTED: usize = 3;

impl Outcome {
    /// Returns the number of requests to locks.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.history.iter().filter(|event| matches!(event.step, Step::Invoke(_))).count() as u64
    }

    /// Returns what its processes did, a line for each event.
    #[must_use]
    pub fn events(&self) -> String {
        let line = |event: &Event| {
            let Event { at, process, chain, call, key, step, .. } = event;
            let ms = at / 1_000_000;
            format!("{ms:>6} ms, process {process}, chain {chain}, call {call}: {key} {step:?}")
        };
        self.history.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Judges the result.
    ///
    /// # Errors
    ///
    /// The violations, as text.
    pub fn judge(&self) -> Result<Verdict, String> {
        let mut report = String::new();
        for finding in &self.findings {
            writeln!(report, "{finding}").expect("writing to a string cannot fail");
        }
        let mut verdict = Verdict::default();
        match check(&self.history) {
            Ok(judged) => verdict.locks = judged,
            Err(violations) => list(&mut report, &violations),
        }
        for (key, events) in &self.terms {
            match check_terms(events) {
                Ok(judged) => verdict.add(&judged),
                Err(violations) => {
                    writeln!(report, "the leaders of `{key}`:").expect("as above");
                    list(&mut report, &violations);
                }
            }
        }
        if report.is_empty() { Ok(verdict) } else { Err(report) }
    }
}

impl Verdict {
    /// Adds the terms of another key.
    fn add(&mut self, more: &JudgedTerms) {
        let JudgedTerms { terms, leaders, wrote, refused, ended } = &mut self.terms;
        *terms += more.terms;
        *leaders += more.leaders;
        *wrote += more.wrote;
        *refused += more.refused;
        *ended += more.ended;
    }
}

fn list(report: &mut String, violations: &[impl Display]) {
    for violation in violations.iter().take(LISTED) {
        writeln!(report, "{violation}").expect("as above");
    }
    if let more @ 1.. = violations.len().saturating_sub(LISTED) {
        writeln!(report, "and {more} more").expect("as above");
    }
}
