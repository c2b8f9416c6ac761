//! `cargo xtask guards`: takes each guard out of the code and sees the tests fail that it is there
//! for.

mod guard;
mod tree;

use crate::newest;
use guard::Guard;
use tree::Tree;

/// Where the guards are written down.
const DIRECTORY: &str = "tests/mutants";

/// All guards, or those that have one of `words` in their name or in that of a test.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut guards = Guard::read_all()?;
    guards.retain(|guard| words.is_empty() || words.iter().any(|word| guard.concerns(word)));
    // Some guards are of what only those servers show.
    let tree = Tree::copied(newest::obtain().into_iter().flatten().collect())?;
    let mut unseen = Vec::new();
    for guard in &guards {
        for test in &guard.tests {
            let outcome = tree.without(guard, test)?;
            eprintln!("xtask: without {}: {test} {outcome}", guard.name);
            if !outcome.is_red() {
                unseen.push(format!("\n  {}: {test} {outcome}", guard.name));
            }
        }
    }
    if !unseen.is_empty() {
        return Err(format!("not missed:{}", unseen.concat()));
    }
    eprintln!("xtask: {} guards, each missed by its tests", guards.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Guard;
    use crate::child;

    /// Cheap enough for every run: code that changes takes its guards along.
    #[test]
    fn every_guard_is_still_in_the_code() {
        let (guards, root) = (Guard::read_all().unwrap(), child::root());
        assert!(!guards.is_empty());
        let errors: Vec<_> =
            guards.iter().filter_map(|guard| guard.taken_out(root).err()).collect();
        assert!(errors.is_empty(), "{}", errors.join("\n"));
    }
}
