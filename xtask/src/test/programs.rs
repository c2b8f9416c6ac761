//! The test programs of the workspace: those that wait and those that compute.

/// They start servers or other processes, and wait for most of their time. `it` is not among them.
pub(super) const WITH_SERVERS: [&str; 4] = ["axum-sqlx", "cli", "shop", "store"];

/// They start no server, and nothing in them depends on the time that passes. `models` is not among them.
pub(super) const COMPUTING: [&str; 13] = [
    "alerts",
    "comparison",
    "counterexamples",
    "flawed",
    "leaders",
    "pages",
    "pause",
    "proof",
    "repeat",
    "scenes",
    "seeds",
    "ui",
    "wrong_leaders",
];

/// Returns cargo's arguments for these programs.
pub(super) fn arguments(names: &[&'static str]) -> Vec<&'static str> {
    names.iter().flat_map(|name| ["--test", name]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{COMPUTING, WITH_SERVERS};
    use crate::child;

    /// A program in none of the lists would not run.
    ///
    /// Red without: a name in either list.
    #[test]
    fn every_test_program_is_run() {
        let mut metadata = child::cargo(&["metadata", "--no-deps", "--format-version=1"]);
        let output = metadata.current_dir(child::root()).output().expect("cargo");
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let packages = metadata["packages"].as_array().expect("packages");
        let targets = packages.iter().flat_map(|it| it["targets"].as_array().expect("targets"));
        let run = targets.filter(|it| it["kind"][0] == "test" && it["test"] == true);
        let mut run: Vec<_> = run.map(|it| it["name"].as_str().expect("a name")).collect();
        run.sort_unstable();
        let mut listed = [&WITH_SERVERS[..], &COMPUTING, &["it", "models"]].concat();
        listed.sort_unstable();
        assert_eq!(run, listed);
    }
}
