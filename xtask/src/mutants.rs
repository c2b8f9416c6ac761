//! `cargo xtask mutants`: applies each mutant to a copy of the code, and checks that its tests
//! fail.

mod bodies;
mod build;
mod change;
mod messages;
mod mutant;
mod outcome;
mod parallel;
mod plan;
mod process;
mod program;
mod runs;
mod scripts;
mod shared;
mod switch;
mod tree;

use std::fs;

use crate::child;
use crate::newest::{self, Newest};
use mutant::Mutant;
use plan::Plan;
use shared::Shared;
use tree::Tree;

/// The folder of the mutants.
const DIRECTORY: &str = "tests/mutants";

/// Runs all mutants, or those with one of `words` in their name, or in that of a test or a file.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mutants = Mutant::read_all()?;
    // Of all mutants, so that the words change nothing in the shared build.
    let mut plan = Plan::of(&mutants, child::root())?;
    let mut chosen: Vec<&Mutant> = mutants.iter().collect();
    chosen.retain(|mutant| words.is_empty() || words.iter().any(|word| mutant.concerns(word)));
    fs::create_dir_all(build::outputs()).map_err(|error| format!("target/mutants: {error}"))?;
    // Only tests on these servers detect some of the mutants.
    let newest: Vec<Newest> = newest::obtain().into_iter().flatten().collect();
    let mut undetected = Vec::new();
    let together = |plan: &Plan| -> Vec<&Mutant> {
        chosen.iter().copied().filter(|mutant| !plan.is_alone(mutant)).collect()
    };
    let planned = together(&plan);
    if !planned.is_empty() {
        let tests = planned.iter().flat_map(|mutant| &mutant.tests);
        let programs: Vec<_> = program::grouped(tests)?.into_keys().collect();
        let shared = Shared::built(&mut plan, &mutants, &programs)?;
        undetected = runs::of_shared(&shared, &together(&plan), &newest)?;
    }
    let alone: Vec<_> = chosen.iter().filter(|mutant| plan.is_alone(mutant)).collect();
    eprintln!("xtask: {} mutants, {} of them with a build of their own", chosen.len(), alone.len());
    if !alone.is_empty() {
        let tree = Tree::copied("tree", |_| None)?;
        for mutant in alone {
            undetected.extend(runs::of_own_build(&tree, mutant, &newest)?);
        }
    }
    if !undetected.is_empty() {
        return Err(format!("not detected:\n{}", undetected.concat()));
    }
    eprintln!("xtask: each was detected by its tests");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::mutant::Mutant;
    use super::program::grouped;
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
        let mutants = Mutant::read_all().unwrap();
        grouped(mutants.iter().flat_map(|mutant| &mutant.tests)).unwrap();
    }
}
