//! Mutants of Lua and SQL need no build of their own: the text of a script is replaced in the
//! programs that embed it. The library knows nothing of this.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use super::mutant::Mutant;
use super::program::{Outcomes, Program, Programs};
use super::tree::Tree;
use crate::child;

/// Follows each script in the copy, because a mutant may be longer than the script.
pub(crate) const PADDING: [u8; 256] = [b' '; 256];

/// How long a process may still run a program that is to be changed.
const LAST_PROCESS: Duration = Duration::from_secs(10);

pub(crate) fn is_script(file: &str) -> bool {
    file.starts_with("lockattr/src/") && [".lua", ".sql"].iter().any(|end| file.ends_with(end))
}

/// Programs that were built once for all mutants of scripts.
pub(crate) struct Patched<'a> {
    tree: &'a Tree,
    programs: &'a Programs,
    tests: Vec<String>,
    /// The programs of tests, and their files.
    built: Vec<(&'static Program, PathBuf)>,
    places: Vec<Place>,
}

/// A file that has the text of a script: the script itself, or a program.
struct Place {
    script: String,
    file: PathBuf,
    offset: u64,
    modified: SystemTime,
}

impl<'a> Patched<'a> {
    /// Builds the programs that the tests of these mutants need.
    pub(crate) fn built(
        tree: &'a Tree,
        programs: &'a Programs,
        mutants: &[&Mutant],
    ) -> Result<Self, String> {
        let tests = unique(mutants.iter().flat_map(|mutant| mutant.tests.clone()));
        let scripts = unique(mutants.iter().flat_map(|mutant| mutant.files()));
        let (mut built, mut files) = (Vec::new(), Vec::new());
        for program in Programs::grouped(&tests, &[])?.into_keys() {
            let executables = executables(&mut programs.cargo(program))?;
            // The programs that the tests start are elsewhere.
            let in_deps = |file: &&PathBuf| file.parent().is_some_and(|it| it.ends_with("deps"));
            let tests = executables.iter().find(in_deps);
            built.push((program, tests.ok_or("no program of tests was built")?.clone()));
            files.extend(executables);
        }
        files.extend(scripts.iter().map(|script| tree.root.join(script)));
        let mut places = Vec::new();
        for file in unique(files) {
            let error = |error| format!("{}: {error}", file.display());
            let content = fs::read(&file).map_err(error)?;
            let modified = file.metadata().and_then(|file| file.modified()).map_err(error)?;
            for script in &scripts {
                let found = positions(&content, tree.read(script)?.as_bytes());
                places.extend(found.into_iter().map(|offset| Place {
                    script: (*script).to_owned(),
                    file: file.clone(),
                    offset: offset as u64,
                    modified,
                }));
            }
        }
        // One place is the script itself.
        let embeds = |script: &&str| places.iter().filter(|place| place.script == *script).count();
        match scripts.iter().find(|script| embeds(script) < 2) {
            Some(script) => Err(format!("no program has the text of {script}")),
            None => Ok(Self { tree, programs, tests, built, places }),
        }
    }

    /// Runs the tests of all mutants without any.
    pub(crate) fn unchanged(&self) -> Result<Outcomes, String> {
        self.test(&self.tests)
    }

    /// Runs the tests of this mutant with it, and restores the programs.
    pub(crate) fn with(&self, mutant: &Mutant) -> Result<Outcomes, String> {
        let (mut mutated, mut originals) = (Vec::new(), Vec::new());
        for (script, text) in mutant.applied(&self.tree.root)? {
            let original = self.tree.read(script)?.into_bytes();
            let fitted = fitted(&text, original.len());
            mutated.push((script, fitted.ok_or(format!("{}: much longer", mutant.name))?));
            originals.push((script, original));
        }
        // If this program is interrupted, cargo sees that the programs are old, and builds them.
        let outcomes = self.write(&mutated, |_| SystemTime::UNIX_EPOCH);
        let outcomes = outcomes.and_then(|()| self.test(&mutant.tests));
        self.write(&originals, |place| place.modified)?;
        outcomes
    }

    fn test(&self, tests: &[String]) -> Result<Outcomes, String> {
        let mut outcomes = Vec::new();
        for (program, names) in Programs::grouped(tests, &[])? {
            let built = self.built.iter().find(|(this, _)| *this == program);
            let (_, file) = built.expect("the programs of all tests are built");
            let mut command = Command::new(file);
            command.current_dir(self.tree.root.join(program.folder));
            outcomes.extend(self.programs.run(program, &names, command)?);
        }
        Ok(outcomes)
    }

    /// Writes these texts to all places of the scripts.
    fn write(
        &self,
        texts: &[(&str, Vec<u8>)],
        modified: impl Fn(&Place) -> SystemTime,
    ) -> Result<(), String> {
        for (script, text) in texts {
            for place in self.places.iter().filter(|place| place.script == *script) {
                let written = when_ended(&place.file).and_then(|file| {
                    file.write_all_at(text, place.offset)?;
                    file.set_modified(modified(place))
                });
                written.map_err(|error| format!("{}: {error}", place.file.display()))?;
            }
        }
        Ok(())
    }
}

/// Opens a program for writing, once the last process that runs it has ended.
#[allow(clippy::disallowed_methods, reason = "the real clock, and no tokio around")]
fn when_ended(program: &Path) -> io::Result<File> {
    let started = Instant::now();
    loop {
        match File::options().write(true).open(program) {
            Err(error)
                if error.kind() == io::ErrorKind::ExecutableFileBusy
                    && started.elapsed() < LAST_PROCESS =>
            {
                sleep(LAST_PROCESS / 100);
            }
            opened => return opened,
        }
    }
}

fn unique<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    BTreeSet::from_iter(all).into_iter().collect()
}

/// Builds a program of tests, and returns the files of all programs that were built for it.
fn executables(cargo: &mut Command) -> Result<Vec<PathBuf>, String> {
    cargo.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let line = child::command_line(cargo);
    eprintln!("xtask: {line}");
    let output = cargo.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("`{line}` could not be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{line}` failed: {}", output.status));
    }
    let file = |line: &str| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        Some(PathBuf::from(rest.split_once('"')?.0))
    };
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(file).collect())
}

/// Returns the text with as many spaces at its end as this length needs.
fn fitted(text: &str, length: usize) -> Option<Vec<u8>> {
    let mut text = text.trim_end_matches(' ').as_bytes().to_vec();
    let is_short = text.len() <= length;
    text.resize(length, b' ');
    is_short.then_some(text)
}

/// Returns where `content` has this text. A program has some hundred megabytes, so the search skips as
/// much as it can: by Horspool's method.
fn positions(content: &[u8], text: &[u8]) -> Vec<usize> {
    let Some(last) = text.len().checked_sub(1) else { return Vec::new() };
    let mut skips = [text.len(); 256];
    for (at, byte) in text[..last].iter().enumerate() {
        skips[usize::from(*byte)] = last - at;
    }
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(here) = content.get(at..at + text.len()) {
        if here == text {
            found.push(at);
        }
        at += skips[usize::from(here[last])];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{fitted, positions};

    #[test]
    fn a_text_is_found_wherever_it_is() {
        assert_eq!(positions(b"abcabxabcab", b"abc"), [0, 6]);
        assert_eq!(positions(b"aaaa", b"aa"), [0, 1, 2]);
        assert_eq!(positions(b"ab", b"abc"), [0; 0]);
        assert_eq!(positions(b"ab", b""), [0; 0]);
    }

    #[test]
    fn a_mutant_is_as_long_as_its_script_or_refused() {
        assert_eq!(fitted("one\n  ", 6), Some(b"one\n  ".to_vec()));
        assert_eq!(fitted("three\n ", 6), Some(b"three\n".to_vec()));
        assert_eq!(fitted("longer\n", 6), None);
    }
}
