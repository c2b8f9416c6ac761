//! The result of a round, for people and for programs.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// An error that a process found itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Complaint {
    /// A promise was broken.
    Violation(String),
    /// A call was not answered, or a lock not acquired.
    Hung(String),
    /// Anything else that must not happen in such a run.
    Wrong(String),
}

/// The complaints of a round's processes: one file, a line for each.
#[derive(Debug)]
pub(crate) struct Complaints {
    path: PathBuf,
    process: u32,
}

impl Complaints {
    pub(crate) fn at(directory: &Path, process: u32) -> Self {
        Self { path: directory.join("complaints.jsonl"), process }
    }

    pub(crate) fn say(&self, complaint: Complaint) {
        let mut line = serde_json::to_vec(&(self.process, complaint)).expect("plain data");
        line.push(b'\n');
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        file.and_then(|mut file| file.write_all(&line)).expect("a complaint can be written");
    }

    pub(crate) fn read(directory: &Path) -> Vec<(u32, Complaint)> {
        let text = std::fs::read_to_string(directory.join("complaints.jsonl")).unwrap_or_default();
        // The last line of a killed process may be cut short.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// The number of operations with each result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Operations {
    pub(crate) acquired: u64,
    pub(crate) contended: u64,
    /// The store answered with an error, or the lease was over before the answer came.
    pub(crate) failed: u64,
    /// The answer did not arrive: the call was dropped, or its process killed.
    pub(crate) unknown: u64,
    pub(crate) reentered: u64,
    pub(crate) renewed: u64,
    pub(crate) released: u64,
    pub(crate) checked: u64,
    pub(crate) lost: u64,
    /// Entries in all logs.
    pub(crate) added: u64,
    /// Terms of leaders that began.
    pub(crate) terms: u64,
    /// Writes of leaders that their resource accepted.
    pub(crate) term_writes: u64,
    /// Writes that it refused, because a later term had written.
    pub(crate) term_refusals: u64,
}

/// One round on one topology.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Outcome {
    pub(crate) topology: &'static str,
    pub(crate) seed: u64,
    /// The time during which faults were injected.
    pub(crate) seconds: f64,
    pub(crate) operations: Operations,
    pub(crate) faults: BTreeMap<String, u64>,
    pub(crate) violations: Vec<String>,
    pub(crate) leaked: Vec<String>,
    /// Wait-queue entries that were removed only by the queue's own expiry: not a finding, but
    /// worth a look.
    pub(crate) outlived: Vec<String>,
    pub(crate) hung: Vec<String>,
    /// Failures of the round itself.
    pub(crate) wrong: Vec<String>,
    pub(crate) history: Option<PathBuf>,
    pub(crate) replay: Option<String>,
}

impl Outcome {
    pub(crate) fn is_clean(&self) -> bool {
        [&self.violations, &self.leaked, &self.hung, &self.wrong].iter().all(|list| list.is_empty())
    }

    /// Adds another round of the same topology.
    pub(crate) fn add(&mut self, other: &Self) {
        self.topology = other.topology;
        self.seconds += other.seconds;
        let (ours, theirs) = (&mut self.operations, &other.operations);
        ours.acquired += theirs.acquired;
        ours.contended += theirs.contended;
        ours.failed += theirs.failed;
        ours.unknown += theirs.unknown;
        ours.reentered += theirs.reentered;
        ours.renewed += theirs.renewed;
        ours.released += theirs.released;
        ours.checked += theirs.checked;
        ours.lost += theirs.lost;
        ours.added += theirs.added;
        ours.terms += theirs.terms;
        ours.term_writes += theirs.term_writes;
        ours.term_refusals += theirs.term_refusals;
        for (kind, count) in &other.faults {
            *self.faults.entry(kind.clone()).or_default() += count;
        }
        self.violations.extend(other.violations.iter().cloned());
        self.leaked.extend(other.leaked.iter().cloned());
        self.outlived.extend(other.outlived.iter().cloned());
        self.hung.extend(other.hung.iter().cloned());
        self.wrong.extend(other.wrong.iter().cloned());
    }

    /// Two lines for people, and one for each finding.
    pub(crate) fn report(&self) -> String {
        let Operations { acquired, contended, failed, unknown, .. } = &self.operations;
        let Operations { reentered, renewed, released, checked, lost, added, .. } =
            &self.operations;
        let Operations { terms, term_writes, term_refusals, .. } = &self.operations;
        let faults: u64 = self.faults.values().sum();
        let kinds: Vec<String> =
            self.faults.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let mut text = format!(
            "{:<16} {:>6.0} s  acquired {acquired}, contended {contended}, failed {failed}, unknown \
             {unknown}; reentered {reentered}, renewed {renewed}, released {released}, checked \
             {checked}, lost {lost}; resource writes {added}; terms {terms}, their writes {term_writes}, \
             refused {term_refusals}\n{:24}{faults} faults: {}\n{:24}violations {}, \
             leaked keys {}, hung waiters {}",
            self.topology,
            self.seconds,
            "",
            kinds.join(", "),
            "",
            self.violations.len(),
            self.leaked.len(),
            self.hung.len(),
        );
        let findings = [
            ("VIOLATION", &self.violations),
            ("LEAKED", &self.leaked),
            ("left in the queue until its entry expires", &self.outlived),
            ("HUNG", &self.hung),
            ("WRONG", &self.wrong),
        ];
        for (kind, findings) in findings {
            for finding in findings.iter().take(10) {
                text += &format!("\n    {kind}: {finding}");
            }
            if findings.len() > 10 {
                text += &format!("\n    {kind}: … and {} more", findings.len() - 10);
            }
        }
        if let Some(history) = &self.history {
            text += &format!("\n    history: {}", history.display());
        }
        if let Some(replay) = &self.replay {
            text += &format!("\n    again:   {replay}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_parsed_as_they_were_printed() {
        let directory = tempfile::tempdir().unwrap();
        let said = Complaint::Hung("no reply".into());
        Complaints::at(directory.path(), 7).say(said.clone());
        assert_eq!(Complaints::read(directory.path()), [(7, said)]);
    }

    #[test]
    fn any_finding_makes_a_round_unclean() {
        let clean = Outcome::default();
        assert!(clean.is_clean());
        let found = || vec!["something".to_owned()];
        assert!(!Outcome { violations: found(), ..clean.clone() }.is_clean());
        assert!(!Outcome { leaked: found(), ..clean.clone() }.is_clean());
        assert!(!Outcome { hung: found(), ..clean.clone() }.is_clean());
        assert!(!Outcome { wrong: found(), ..clean }.is_clean());
    }
}
