//! `cargo xtask mutants`: applies each mutant to a copy of the code, and checks that its tests
//! fail.

mod mutant;
mod program;
mod scripts;
mod tree;

use crate::newest;
use mutant::Mutant;
use program::{Outcome, Programs};
use scripts::Patched;
use tree::Tree;

/// The folder of the mutants.
const DIRECTORY: &str = "tests/mutants";

/// Runs all mutants, or those with one of `words` in their name, or in that of a test or a file.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut mutants = Mutant::read_all()?;
    mutants.retain(|mutant| words.is_empty() || words.iter().any(|word| mutant.concerns(word)));
    let tree = Tree::copied()?;
    // Only tests on these servers detect some of the mutants.
    let programs = Programs::of(&tree, newest::obtain().into_iter().flatten().collect())?;
    let (of_scripts, of_rust): (Vec<&Mutant>, Vec<&Mutant>) =
        mutants.iter().partition(|mutant| mutant.is_of_scripts());
    let mut undetected = Vec::new();
    if !of_scripts.is_empty() {
        let patched = Patched::built(&tree, &programs, &of_scripts)?;
        // A test that fails anyway detects nothing.
        let failed = patched.unchanged()?.into_iter().filter(|(_, outcome)| !outcome.is_success());
        undetected.extend(failed.map(|(test, outcome)| line("no mutant", &test, &outcome)));
        for mutant in &of_scripts {
            undetected.extend(reported(mutant, &patched.with(mutant)?));
        }
    }
    for mutant in &of_rust {
        let outcomes = tree.with(mutant, || programs.test(&mutant.tests))?;
        undetected.extend(reported(mutant, &outcomes));
    }
    if !undetected.is_empty() {
        return Err(format!("not detected:\n{}", undetected.concat()));
    }
    eprintln!("xtask: {} mutants, each detected by its tests", mutants.len());
    Ok(())
}

/// Prints the outcomes of a mutant's tests, and returns those that have not detected it.
fn reported(mutant: &Mutant, outcomes: &[(String, Outcome)]) -> Vec<String> {
    for (test, outcome) in outcomes {
        eprint!("xtask: with {}", line(&mutant.name, test, outcome));
    }
    let undetected = outcomes.iter().filter(|(_, outcome)| !outcome.is_failure());
    undetected.map(|(test, outcome)| line(&mutant.name, test, outcome)).collect()
}

fn line(mutant: &str, test: &str, outcome: &Outcome) -> String {
    format!("{mutant}: {test} {outcome}\n")
}

#[cfg(test)]
mod tests {
    use super::Mutant;
    use super::program::Programs;
    use crate::child;

    /// Cheap enough for every run: a change of the code must update its mutants.
    #[test]
    fn every_mutant_is_still_in_the_code() {
        let (mutants, root) = (Mutant::read_all().unwrap(), child::root());
        assert!(!mutants.is_empty());
        let errors: Vec<_> =
            mutants.iter().filter_map(|mutant| mutant.applied(root).err()).collect();
        assert!(errors.is_empty(), "{}", errors.join("\n"));
    }

    #[test]
    fn every_test_of_a_mutant_belongs_to_a_program() {
        let tests = Mutant::read_all().unwrap().into_iter().flat_map(|mutant| mutant.tests);
        let modules = ["timing".to_owned()];
        Programs::grouped(&tests.collect::<Vec<_>>(), &modules).unwrap();
    }
}
