//! Runs the tests of mutants, and reports those that do not fail.

use std::collections::BTreeSet;
use std::thread::available_parallelism;

use super::build::Build;
use super::mutant::Mutant;
use super::outcome::{Outcome, Outcomes};
use super::parallel;
use super::program::{self, grouped};
use super::scripts::Patched;
use super::shared::Shared;
use super::tree::Tree;
use crate::newest::Newest;
use crate::test::FOR_EACH_CORE;

/// How many times as many tests run with mutants as without: many of them wait for two minutes until
/// they fail.
const AT_A_TIME: usize = 2;

/// Runs the tests of these mutants in the shared build, and returns what did not detect one.
pub(crate) fn of_shared(
    shared: &Shared,
    mutants: &[&Mutant],
    newest: &[Newest],
) -> Result<Vec<String>, String> {
    let test = |mutant: &Mutant| {
        let outcomes = shared.build.test(&grouped(&mutant.tests)?, Some(mutant.number), newest)?;
        Ok(reported(mutant, &outcomes))
    };
    // A test that fails anyway detects nothing.
    let tests: BTreeSet<_> = mutants.iter().flat_map(|mutant| &mutant.tests).collect();
    let unchanged = shared.build.test(&grouped(tests)?, None, newest)?;
    let failed = unchanged.into_iter().filter(|(_, outcome)| !outcome.is_success());
    let failed = failed.map(|(test, outcome)| line("no mutant", &test, &outcome));
    let mut undetected: Vec<String> =
        failed.inspect(|line| eprint!("xtask: with {line}")).collect();
    let (of_scripts, of_rust): (Vec<&Mutant>, Vec<&Mutant>) =
        mutants.iter().partition(|mutant| mutant.scripts().next().is_some());
    let cores = available_parallelism().map_or(1, usize::from);
    let size = |mutant: &&Mutant| mutant.tests.len();
    for lines in
        parallel::all(AT_A_TIME * FOR_EACH_CORE * cores, &of_rust, size, |mutant| test(mutant))
    {
        undetected.extend(lines?);
    }
    // These change the programs, so they run one after the other.
    let patched = Patched::of(shared, &of_scripts)?;
    for mutant in &of_scripts {
        undetected.extend(patched.with(mutant, || test(mutant))?);
    }
    Ok(undetected)
}

/// Builds a mutant by itself, runs its tests, and returns what did not detect it.
pub(crate) fn of_own_build(
    tree: &Tree,
    mutant: &Mutant,
    newest: &[Newest],
) -> Result<Vec<String>, String> {
    let mut tests = grouped(&mutant.tests)?;
    program::prefer_core(&mut tests, &tree.read("tests/it/core.rs")?);
    let outcomes = tree.with(mutant, || match Build::of(&tree.root, tests.keys().copied()) {
        Ok(build) => build.test(&tests, Some(mutant.number), newest),
        Err(output) => {
            let not_run = |test: &String| (test.clone(), Outcome::NotRun(output.clone()));
            Ok(mutant.tests.iter().map(not_run).collect())
        }
    })?;
    Ok(reported(mutant, &outcomes))
}

/// Prints the outcomes of a mutant's tests, and returns those that have not detected it.
fn reported(mutant: &Mutant, outcomes: &Outcomes) -> Vec<String> {
    for (test, outcome) in outcomes {
        eprint!("xtask: with {}", line(&mutant.name, test, outcome));
    }
    let undetected = outcomes.iter().filter(|(_, outcome)| !outcome.is_failure());
    undetected.map(|(test, outcome)| line(&mutant.name, test, outcome)).collect()
}

fn line(mutant: &str, test: &str, outcome: &Outcome) -> String {
    format!("{mutant}: {test} {outcome}\n")
}
