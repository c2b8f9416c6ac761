//! What became of a world, and whether that may be.

use std::fmt::Write;
use std::time::Duration;

use lockattr_history::{Event, Judged, Step, check};

use crate::plan::{KINDS, Topology};

/// How a world went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What it came from.
    pub seed: u64,
    /// Its servers.
    pub topology: Topology,
    /// What its processes did, in order.
    pub history: Vec<Event>,
    /// What must not be, and is in no history.
    pub findings: Vec<String>,
    /// How often the resources were written.
    pub written: u64,
    /// How long it was.
    pub simulated: Duration,
    /// What went wrong, by kind.
    pub injected: [u64; KINDS.len()],
}

/// How many violations a report tells; the rest come of the first.
const TOLD: usize = 3;

impl Outcome {
    /// How often somebody asked something of a lock.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.history.iter().filter(|event| matches!(event.step, Step::Invoke(_))).count() as u64
    }

    /// Judges it.
    ///
    /// # Errors
    ///
    /// What must not be, in words.
    pub fn judge(&self) -> Result<Judged, String> {
        let mut report = String::new();
        for finding in &self.findings {
            writeln!(report, "{finding}").expect("a string takes all");
        }
        match check(&self.history) {
            Ok(judged) if report.is_empty() => return Ok(judged),
            Ok(_) => {}
            Err(violations) => {
                let many = violations.len();
                for violation in violations.iter().take(TOLD) {
                    writeln!(report, "{violation}").expect("as above");
                }
                if many > TOLD {
                    writeln!(report, "and {} more", many - TOLD).expect("as above");
                }
            }
        }
        Err(report)
    }
}
