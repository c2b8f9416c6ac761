//! Builds the programs of the tests, and runs tests in them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::outcome::{Outcome, Outcomes};
use super::program::{Grouped, Program};
use super::{process, switch};
use crate::child;
use crate::newest::Newest;
use crate::test::{FOR_EACH_CORE, in_parallel};

/// Most tests that hang fail after two minutes. This ends the others.
const LIMIT: Duration = Duration::from_secs(6 * 60);

/// Cargo builds a dependency with the features that all packages of a command need. So each command
/// has the same packages, and no dependency is built again.
const PACKAGES: [&str; 4] = ["lockattr", "lockattr-tests", "lockattr-cli", "lockattr-sim"];

/// Programs that were built from a copy of the project.
pub(crate) struct Build {
    root: PathBuf,
    programs: Vec<(&'static Program, PathBuf)>,
    /// All programs that were built, also those that tests start.
    pub(crate) files: BTreeSet<PathBuf>,
}

impl Build {
    /// Builds these programs, or returns what the compiler says.
    pub(crate) fn of(
        root: &Path,
        programs: impl IntoIterator<Item = &'static Program>,
    ) -> Result<Self, String> {
        let mut build =
            Self { root: root.to_owned(), programs: Vec::new(), files: BTreeSet::new() };
        let (shared, others): (Vec<_>, Vec<_>) =
            programs.into_iter().partition(|program| PACKAGES.contains(&program.package));
        if !shared.is_empty() {
            build.add(&PACKAGES, &shared)?;
        }
        for program in others {
            build.add(&[program.package], &[program])?;
        }
        Ok(build)
    }

    fn add(&mut self, packages: &[&str], programs: &[&'static Program]) -> Result<(), String> {
        let mut cargo = child::cargo(&["test", "--all-features", "--no-run"]);
        cargo.args(packages.iter().flat_map(|package| ["--package", package]));
        cargo.args(programs.iter().flat_map(|program| program.target));
        let files = executables(cargo.current_dir(&self.root))?;
        for program in programs {
            let expected = program.name();
            let is_this = |file: &&PathBuf| {
                let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                // The programs that the tests start are elsewhere.
                file.parent().is_some_and(|it| it.ends_with("deps"))
                    && name.rsplit_once('-').is_some_and(|(name, _)| name == expected)
            };
            let file = files.iter().find(is_this);
            let file = file.ok_or_else(|| format!("`{expected}` was not built"))?;
            self.programs.push((program, file.clone()));
        }
        self.files.extend(files);
        Ok(())
    }

    /// Runs these tests, with a mutant of the shared build if there is one.
    pub(crate) fn test(
        &self,
        tests: &Grouped<'_>,
        mutant: Option<usize>,
        newest: &[Newest],
    ) -> Result<Outcomes, String> {
        let mut outcomes = Vec::new();
        for (program, names) in tests {
            let built = self.programs.iter().find(|(this, _)| this == program);
            let (_, file) = built.expect("the programs of all tests are built");
            let mut command = Command::new(file);
            command.arg("--exact").args(names).current_dir(self.root.join(program.folder));
            command.envs(newest.iter().map(Newest::named));
            command.envs(mutant.map(|number| (switch::VARIABLE, number.to_string())));
            in_parallel(&mut command, FOR_EACH_CORE);
            let directory = outputs();
            let name = format!("{}-{}.txt", mutant.unwrap_or_default(), program.name());
            let limit = mutant.map_or(Duration::MAX, |_| LIMIT);
            let (output, has_ended) = process::output(&mut command, &directory.join(name), limit)?;
            outcomes.extend(names.iter().map(|name| {
                (format!("{}{name}", program.prefix), Outcome::read(&output, has_ended, name))
            }));
        }
        Ok(outcomes)
    }
}

/// The outputs of all programs of tests that ran last, for a look at the reason of a failure.
pub(crate) fn outputs() -> PathBuf {
    directory().join("outputs")
}

pub(crate) fn directory() -> PathBuf {
    child::root().join("target/mutants")
}

/// Returns the files of the programs that were built, or what the compiler says.
fn executables(cargo: &mut Command) -> Result<Vec<PathBuf>, String> {
    cargo.arg("--message-format=json-render-diagnostics");
    let line = child::command_line(cargo);
    cargo.env("CARGO_TARGET_DIR", directory());
    // CI builds without.
    cargo.env("CARGO_INCREMENTAL", "1");
    eprintln!("xtask: {line}");
    let output = cargo.output();
    let output = output.map_err(|error| format!("`{line}` could not be started: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let file = |line: &str| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        Some(PathBuf::from(rest.split_once('"')?.0))
    };
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(file).collect())
}
