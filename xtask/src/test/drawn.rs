//! The tests of `it` and of `proof` that choose at random what they do. They have the seed 0, except in `long`.

use std::hash::{BuildHasher, RandomState};

/// Their names, or parts of them. `long.rs` lists others.
pub(super) const TESTS: [&str; 6] = [
    "a_counter_of_three_processes_loses_nothing_while_their_networks_fail",
    "alike::",
    "key::",
    "mutated::",
    "terms_never_interleave_while_processes_and_networks_fail_at_random",
    "wait_queue::histories::",
];

/// The environment variable with their seed, and with that of the first simulated world.
pub(super) const SEED: &str = "LOCKATTR_SEED";

/// Returns the seed of a run of `long` or `deep`: that of the environment, or a random one, which is printed.
pub(super) fn seed(verb: &str) -> String {
    // The system seeds `RandomState`. Half of the bits are enough, and easier to type.
    let random = || (RandomState::new().hash_one(SEED) >> 32).to_string();
    let seed = std::env::var(SEED).unwrap_or_else(|_| random());
    eprintln!("xtask: to repeat what is random: {SEED}={seed} cargo xtask {verb}");
    seed
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::TESTS;
    use crate::child;
    use crate::test::long;

    fn sources(directory: &Path) -> Vec<(String, String)> {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let read = |path: std::path::PathBuf| match path.is_dir() {
            true => sources(&path),
            false => vec![(path.display().to_string(), fs::read_to_string(path).unwrap())],
        };
        entries.flat_map(read).collect()
    }

    /// Otherwise they would never have another seed than 0.
    #[test]
    fn all_that_choose_at_random_run_in_long() {
        let folders = ["tests/it", "tests/history/proof"];
        let sources = folders.map(|folder| sources(&child::root().join(folder))).concat();
        for (file, text) in sources.iter().filter(|(_, text)| text.contains("seed()")) {
            let names = TESTS.iter().chain(&long::TESTS);
            let is_here = |name: &&&str| match name.strip_suffix("::") {
                Some(module) => file.ends_with(&format!("/{}.rs", module.replace("::", "/"))),
                None => text.contains(&format!("fn {}", name.rsplit("::").next().unwrap())),
            };
            assert!(names.filter(is_here).count() > 0, "`long` does not run {file}");
        }
        let found = |name: &&str| {
            let module = format!("/{}.rs", name.trim_end_matches("::").replace("::", "/"));
            sources.iter().any(|(file, text)| file.ends_with(&module) || text.contains(*name))
        };
        assert_eq!(TESTS.iter().filter(|name| !found(name)).collect::<Vec<_>>(), [&""; 0]);
    }
}
