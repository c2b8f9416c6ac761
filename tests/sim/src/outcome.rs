//! The result of a world, and its judgement.

use std::fmt::Write;
use std::time::Duration;

use lockattr_history::{Event, Judged, Step, check};

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
    /// Violations that no history shows.
    pub findings: Vec<String>,
    /// How often the resources were written.
    pub written: u64,
    /// Its simulated time.
    pub simulated: Duration,
    /// The faults, by kind.
    pub injected: [u64; KINDS.len()],
}

/// How many violations a report lists; the others follow from the first.
const LISTED: usize = 3;

impl Outcome {
    /// Returns the number of requests to locks.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.history.iter().filter(|event| matches!(event.step, Step::Invoke(_))).count() as u64
    }

    /// Judges the result.
    ///
    /// # Errors
    ///
    /// The violations, as text.
    pub fn judge(&self) -> Result<Judged, String> {
        let mut report = String::new();
        for finding in &self.findings {
            writeln!(report, "{finding}").expect("writing to a string cannot fail");
        }
        match check(&self.history) {
            Ok(judged) if report.is_empty() => return Ok(judged),
            Ok(_) => {}
            Err(violations) => {
                let many = violations.len();
                for violation in violations.iter().take(LISTED) {
                    writeln!(report, "{violation}").expect("as above");
                }
                if many > LISTED {
                    writeln!(report, "and {} more", many - LISTED).expect("as above");
                }
            }
        }
        Err(report)
    }
}
