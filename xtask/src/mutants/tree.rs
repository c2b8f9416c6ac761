//! A copy of the project to apply mutants to, so that the working tree stays unchanged.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::mutant::Mutant;
use crate::child;
use crate::newest::Newest;

pub(crate) struct Tree {
    root: PathBuf,
    newest: Vec<Newest>,
}

/// The outcome of a test with a mutant.
pub(crate) enum Outcome {
    Failed,
    Passed,
    /// The test did not run, with its output.
    NotRun(String),
}

impl Outcome {
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Self::Failed)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed => f.write_str("fails"),
            Self::Passed => f.write_str("PASSES"),
            Self::NotRun(output) => write!(f, "DID NOT RUN:\n{output}"),
        }
    }
}

impl Tree {
    /// Copies the files that git tracks or would add, with their current contents. Tests in the
    /// copy use the servers in `newest`.
    pub(crate) fn copied(newest: Vec<Newest>) -> Result<Self, String> {
        let root = child::root().join("target/mutants/tree");
        let files = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(child::root())
            .output()
            .map_err(|error| format!("`git ls-files`: {error}"))?;
        for file in String::from_utf8_lossy(&files.stdout).lines() {
            let (from, to) = (child::root().join(file), root.join(file));
            // Skips links, and files that are deleted but not yet committed.
            let Ok(text) = fs::read(&from) else { continue };
            // An unchanged file is not written, so that it is not built again.
            if fs::read(&to).is_ok_and(|old| old == text) {
                continue;
            }
            let directory = to.parent().expect("the file is in the copy");
            let copied = fs::create_dir_all(directory).and_then(|()| fs::write(&to, text));
            copied.map_err(|error| format!("{}: {error}", to.display()))?;
        }
        Ok(Self { root, newest })
    }

    /// Runs `test` with `mutant`, and restores the code.
    pub(crate) fn with(&self, mutant: &Mutant, test: &str) -> Result<Outcome, String> {
        let mut originals = Vec::new();
        for (file, text) in mutant.applied(&self.root)? {
            originals.push((file, self.read(file)?));
            self.write(file, &text)?;
        }
        let outcome = self.test(test);
        for (file, text) in originals {
            self.write(file, &text)?;
        }
        outcome
    }

    fn read(&self, file: &str) -> Result<String, String> {
        fs::read_to_string(self.root.join(file)).map_err(|error| format!("{file}: {error}"))
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        fs::write(self.root.join(file), text).map_err(|error| format!("{file}: {error}"))
    }

    /// Runs one test. `it::timing::…` is a test of the program `it`, `lib::hold::…` of the runtime,
    /// `macros::tests::…` of the attribute, `cli::run::…` of the command, and `sim::leaders::…` of
    /// the simulation's program `leaders`; a `sim::…` without a program is a scene.
    fn test(&self, test: &str) -> Result<Outcome, String> {
        let (program, name) = match test.strip_prefix("sim::leaders::") {
            Some(name) => ("sim::leaders", name),
            None => test.split_once("::").unwrap_or(("", test)),
        };
        let target: &[&str] = match program {
            "it" => &["--package", "lockattr-tests", "--test", "it"],
            "lib" => &["--package", "lockattr", "--lib"],
            "macros" => &["--package", "lockattr-macros", "--lib"],
            "cli" => &["--package", "lockattr-cli", "--test", "cli"],
            "sim" => &["--package", "lockattr-sim", "--test", "scenes"],
            "sim::leaders" => &["--package", "lockattr-sim", "--test", "leaders"],
            _ => {
                let programs = "`it::`, `lib::`, `macros::`, `cli::` and `sim::`";
                return Err(format!("`{test}` must begin with one of {programs}"));
            }
        };
        let mut cargo = child::cargo(&["test", "--all-features"]);
        cargo.args(target).args(["--", "--exact", name]);
        cargo.env("CARGO_TARGET_DIR", child::root().join("target/mutants"));
        cargo.envs(self.newest.iter().map(Newest::named));
        let output = cargo.current_dir(&self.root).output().map_err(|e| format!("cargo: {e}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(match () {
            () if text.contains("test result: FAILED. 0 passed; 1 failed") => Outcome::Failed,
            () if text.contains("test result: ok. 1 passed") => Outcome::Passed,
            () => {
                let errors = String::from_utf8_lossy(&output.stderr);
                Outcome::NotRun(format!("{text}{errors}"))
            }
        })
    }
}
