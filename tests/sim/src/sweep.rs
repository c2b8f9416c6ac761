//! Runs many worlds, one seed after another, and adds up their figures.

use std::collections::BTreeSet;
use std::env;
use std::fmt;
use std::time::Duration;

use lockattr_history::JudgedTerms;

use crate::leaderless::Replaced;
use crate::outcome::{Outcome, Verdict};
use crate::plan::{KINDS, Plan};
use crate::world::{Wrong, run};

/// The totals of many worlds.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The number of worlds.
    pub seeds: u64,
    /// Their simulated time in total.
    pub simulated: Duration,
    /// Requests to a lock.
    pub operations: u64,
    /// Locks that were acquired.
    pub acquired: u64,
    /// Of these, re-entries.
    pub reentered: u64,
    /// How often a holder was notified that it lost its lock.
    pub lost: u64,
    /// Writes under a lock.
    pub written: u64,
    /// What leaders did.
    pub terms: JudgedTerms,
    /// The leaders that were replaced in time.
    pub replaced: Replaced,
    /// The faults, by kind.
    pub injected: [u64; KINDS.len()],
}

/// Returns the seeds to run: only `LOCKATTR_SIM_SEED`, or as many as `LOCKATTR_SIM_SEEDS` says, or
/// `usual`, from that of all tests on.
///
/// # Panics
///
/// If one of these variables is not a number.
#[must_use]
pub fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str| {
        let number = env::var(name).ok()?;
        Some(number.parse::<u64>().unwrap_or_else(|_| panic!("{name}={number} is not a number")))
    };
    match number("LOCKATTR_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let first = lockattr_history::seed();
            first..first + number("LOCKATTR_SIM_SEEDS").unwrap_or(usual)
        }
    }
}

/// Runs the worlds of these plans.
///
/// # Errors
///
/// The findings, with the commands that reproduce them.
pub fn sweep(plans: impl IntoIterator<Item = Plan>) -> Result<Figures, String> {
    let (mut figures, mut found) = (Figures::default(), BTreeSet::new());
    let mut report = String::new();
    for plan in plans {
        let outcome = run(&plan, Wrong::Nothing);
        match outcome.judge() {
            Ok(judged) => figures.add(&outcome, &judged),
            Err(what) => {
                report.push_str(&format!("{}:\n{what}", plan.name()));
                found.insert((plan.seed, plan.program()));
            }
        }
    }
    for (seed, program) in &found {
        report.push_str(&format!(
            "again: LOCKATTR_SIM_SEED={seed} cargo test -p lockattr-sim --test {program} -- \
             --nocapture\n"
        ));
    }
    if found.is_empty() { Ok(figures) } else { Err(report) }
}

impl Figures {
    fn add(&mut self, outcome: &Outcome, verdict: &Verdict) {
        let Verdict { locks: judged, terms } = verdict;
        self.seeds += 1;
        self.simulated += outcome.simulated;
        self.operations += outcome.operations();
        self.acquired += judged.acquired;
        self.reentered += judged.reentered;
        self.lost += judged.lost;
        self.written += outcome.written;
        self.terms.terms += terms.terms;
        self.terms.leaders += terms.leaders;
        self.terms.wrote += terms.wrote;
        self.terms.refused += terms.refused;
        self.terms.ended += terms.ended;
        self.replaced.add(outcome.replaced);
        for (sum, more) in self.injected.iter_mut().zip(outcome.injected) {
            *sum += more;
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seeds, operations, acquired, reentered, lost, written, .. } = self;
        let hours = self.simulated.as_secs_f64() / 3600.0;
        write!(
            f,
            "{seeds} seeds, {hours:.2} simulated hours, {operations} operations, {acquired} acquired, \
             {reentered} re-entered, {lost} lost, {written} written;"
        )?;
        if self.terms.terms > 0 {
            let JudgedTerms { terms, leaders, wrote, refused, .. } = self.terms;
            let Replaced { killed, silent, over, late, without_leader } = self.replaced;
            write!(
                f,
                " {terms} terms of {leaders} leaders, {wrote} writes accepted, {refused} refused; \
                 {killed} killed, {silent} silent and {over} other leaders replaced within {late:?} \
                 after the lease; at most {without_leader:?} without a leader since any fault;"
            )?;
        }
        for (kind, many) in KINDS.iter().zip(self.injected) {
            write!(f, " {kind}: {many},")?;
        }
        f.write_str(" violations: 0")
    }
}
