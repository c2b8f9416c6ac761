//! `cargo xtask mutants`: applies each mutant to a copy of the code, and checks that its tests
//! fail.

mod mutant;
mod tree;

use crate::newest;
use mutant::Mutant;
use tree::Tree;

/// The folder of the mutants.
const DIRECTORY: &str = "tests/mutants";

/// Runs all mutants, or those with one of `words` in their name or in a test's name.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut mutants = Mutant::read_all()?;
    mutants.retain(|mutant| words.is_empty() || words.iter().any(|word| mutant.concerns(word)));
    // Only tests on these servers detect some of the mutants.
    let tree = Tree::copied(newest::obtain().into_iter().flatten().collect())?;
    let mut undetected = Vec::new();
    for mutant in &mutants {
        for test in &mutant.tests {
            let outcome = tree.with(mutant, test)?;
            eprintln!("xtask: with {}: {test} {outcome}", mutant.name);
            if !outcome.is_failure() {
                undetected.push(format!("\n  {}: {test} {outcome}", mutant.name));
            }
        }
    }
    if !undetected.is_empty() {
        return Err(format!("not detected:{}", undetected.concat()));
    }
    eprintln!("xtask: {} mutants, each detected by its tests", mutants.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Mutant;
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
}
