//! Builds and runs the programs of the tests, in the copy.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use super::tree::Tree;
use crate::child;
use crate::newest::Newest;
use crate::test::{FOR_EACH_CORE, in_parallel};

/// The outcome of a test with a mutant.
pub(crate) enum Outcome {
    /// With the message of its panic.
    Failed(String),
    Passed,
    /// The test did not run, with its output.
    NotRun(String),
}

/// Each test with its outcome.
pub(crate) type Outcomes = Vec<(String, Outcome)>;

impl Outcome {
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    pub(crate) fn is_success(&self) -> bool {
        matches!(self, Self::Passed)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) => write!(f, "fails: {message}"),
            Self::Passed => f.write_str("PASSES"),
            Self::NotRun(output) => write!(f, "DID NOT RUN:\n{output}"),
        }
    }
}

/// A program of tests: what the names of its tests begin with, its package's folder, and cargo's
/// arguments.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Program {
    prefix: &'static str,
    pub(crate) folder: &'static str,
    package: &'static str,
    target: &'static [&'static str],
}

/// `it::timing::…` is a test of the program `it`, `lib::hold::…` of the runtime, `macros::tests::…`
/// of the attribute, `cli::run::…` of the command, and `sim::leaders::…` of the simulation's program
/// `leaders`; a `sim::…` without a program is a scene.
const ALL: [Program; 6] = [
    program("sim::leaders::", "tests/sim", "lockattr-sim", &["--test", "leaders"]),
    program("sim::", "tests/sim", "lockattr-sim", &["--test", "scenes"]),
    IT,
    program("lib::", "lockattr", "lockattr", &["--lib"]),
    program("macros::", "lockattr-macros", "lockattr-macros", &["--lib"]),
    program("cli::", "lockattr-cli", "lockattr-cli", &["--test", "cli"]),
];

const IT: Program = program("it::", "tests", "lockattr-tests", &["--test", "it"]);

/// The part of `it` that starts no server. It is built in a fraction of the time.
const CORE: Program = program("it::", "tests", "lockattr-tests", &["--test", "core"]);

const fn program(
    prefix: &'static str,
    folder: &'static str,
    package: &'static str,
    target: &'static [&'static str],
) -> Program {
    Program { prefix, folder, package, target }
}

pub(crate) struct Programs {
    root: PathBuf,
    newest: Vec<Newest>,
    /// The modules of `core`.
    core: Vec<String>,
}

impl Programs {
    /// Their tests use the servers in `newest`.
    pub(crate) fn of(tree: &Tree, newest: Vec<Newest>) -> Result<Self, String> {
        let core = tree.read("tests/it/core.rs")?;
        let module = |line: &str| Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned());
        let core = core.lines().filter_map(module).collect();
        Ok(Self { root: tree.root.clone(), newest, core })
    }

    /// Returns the programs that have these tests, each with the names that the tests have in it.
    pub(crate) fn grouped<'a>(
        tests: &'a [String],
        core: &[String],
    ) -> Result<BTreeMap<&'static Program, Vec<&'a str>>, String> {
        let mut grouped = BTreeMap::<_, Vec<_>>::new();
        for test in tests {
            let found = ALL.iter().find_map(|this| Some((this, test.strip_prefix(this.prefix)?)));
            let (program, name) = found.ok_or_else(|| {
                let prefixes = ALL.each_ref().map(|this| format!("`{}`", this.prefix));
                format!("`{test}` must begin with one of {}", prefixes.join(", "))
            })?;
            grouped.entry(program).or_default().push(name);
        }
        let is_core = |test: &&str| {
            test.split_once("::").is_some_and(|(module, _)| core.iter().any(|each| each == module))
        };
        if let Some(names) = grouped.remove(&IT) {
            let program = if names.iter().all(is_core) { &CORE } else { &IT };
            grouped.insert(program, names);
        }
        Ok(grouped)
    }

    /// Builds the programs that have these tests, and runs the tests.
    pub(crate) fn test(&self, tests: &[String]) -> Result<Outcomes, String> {
        let mut outcomes = Vec::new();
        for (program, names) in Self::grouped(tests, &self.core)? {
            let mut cargo = self.cargo(program);
            cargo.arg("--");
            outcomes.extend(self.run(program, &names, cargo)?);
        }
        Ok(outcomes)
    }

    /// Returns the command that builds a program and runs its tests.
    pub(crate) fn cargo(&self, program: &Program) -> Command {
        let mut cargo = child::cargo(&["test", "--all-features", "--package", program.package]);
        cargo.args(program.target).current_dir(&self.root);
        cargo.env("CARGO_TARGET_DIR", child::root().join("target/mutants"));
        // CI builds without.
        cargo.env("CARGO_INCREMENTAL", "1");
        cargo
    }

    /// Runs tests of a program by `command`, and returns their outcomes.
    pub(crate) fn run(
        &self,
        program: &Program,
        names: &[&str],
        mut command: Command,
    ) -> Result<Outcomes, String> {
        command.arg("--exact").args(names).envs(self.newest.iter().map(Newest::named));
        in_parallel(&mut command, FOR_EACH_CORE);
        let output =
            command.output().map_err(|e| format!("{}: {e}", child::command_line(&command)))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let outcome = |name: &&str| {
            let has = |end: &str| text.lines().any(|line| line == format!("test {name} ... {end}"));
            let outcome = match () {
                () if has("FAILED") => Outcome::Failed(message(&text, name)),
                () if has("ok") => Outcome::Passed,
                () => {
                    let errors = String::from_utf8_lossy(&output.stderr);
                    Outcome::NotRun(format!("{text}{errors}"))
                }
            };
            (format!("{}{name}", program.prefix), outcome)
        };
        Ok(names.iter().map(outcome).collect())
    }
}

/// Returns the first message that this test has panicked with: it tells whether the test fails for the
/// right reason.
fn message(output: &str, test: &str) -> String {
    let lines = output.lines().skip_while(|line| *line != format!("---- {test} stdout ----"));
    let mut lines = lines.skip(1).take_while(|line| !line.starts_with("---- "));
    let found = lines.by_ref().any(|line| line.contains(" panicked at "));
    found.then(|| lines.next()).flatten().unwrap_or("without a message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::message;

    #[test]
    fn the_message_is_that_of_the_test() {
        let output = "test b ... FAILED\n---- a stdout ----\nthread 'a' (7) panicked at a.rs:1:1:\none\n\n\
                      ---- b stdout ----\nseed\nthread 'b' panicked at b.rs:1:1:\ntwo\nmore\n";
        assert_eq!(message(output, "b"), "two");
        assert_eq!(message(output, "c"), "without a message");
    }
}
