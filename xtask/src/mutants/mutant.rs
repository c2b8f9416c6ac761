//! Parses mutants: edits that take out code, and the tests that must then fail.
//!
//! ```text
//! test: it::redis::away::an_acquire_without_an_answer_is_undone
//! file: lockattr/src/manager/acquire.rs
//! --- with
//!         if self.unsure {
//! --- without
//!         if false {
//! ===
//! ```
//!
//! A mutant may have several `test:` lines; each test must fail. The edits of several files are
//! applied together.

use std::fs;
use std::path::{Path, PathBuf};

use super::change::{Change, changes};
use super::{DIRECTORY, scripts};
use crate::child;

pub(crate) struct Mutant {
    /// Its number among all. The first one is 1.
    pub(crate) number: usize,
    /// The name of its file, and its number in the file.
    pub(crate) name: String,
    pub(crate) tests: Vec<String>,
    edits: Vec<Edit>,
}

struct Edit {
    file: String,
    with: String,
    without: String,
}

/// The part of an edit that a line belongs to.
enum Part {
    Head,
    With,
    Without,
}

impl Mutant {
    pub(crate) fn read_all() -> Result<Vec<Self>, String> {
        let directory = child::root().join(DIRECTORY);
        let entries = fs::read_dir(&directory).map_err(|e| format!("{DIRECTORY}: {e}"))?;
        let mut files: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
        files.sort();
        let mut mutants = Vec::new();
        for file in files {
            let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            for (number, block) in text.split_terminator("===\n").enumerate() {
                mutants.push(Self::parse(format!("{name} {}", number + 1), block)?);
            }
        }
        for (before, mutant) in mutants.iter_mut().enumerate() {
            mutant.number = before + 1;
        }
        Ok(mutants)
    }

    fn parse(name: String, block: &str) -> Result<Self, String> {
        let mut mutant = Self { number: 0, name, tests: Vec::new(), edits: Vec::new() };
        let mut part = Part::Head;
        for line in block.split_inclusive('\n') {
            match (line.trim_end(), mutant.edits.last_mut()) {
                ("--- with", Some(_)) => part = Part::With,
                ("--- without", Some(_)) => part = Part::Without,
                (head, _) if head.starts_with("file: ") => {
                    let file = head["file: ".len()..].to_owned();
                    let (with, without) = (String::new(), String::new());
                    mutant.edits.push(Edit { file, with, without });
                    part = Part::Head;
                }
                (_, Some(edit)) if matches!(part, Part::With) => edit.with += line,
                (_, Some(edit)) if matches!(part, Part::Without) => edit.without += line,
                (head, _) if head.starts_with("test: ") => {
                    mutant.tests.push(head["test: ".len()..].to_owned());
                }
                ("", _) => {}
                (head, _) if head.starts_with('#') => {}
                (other, _) => return Err(format!("{}: unexpected line {other:?}", mutant.name)),
            }
        }
        if mutant.tests.is_empty() || mutant.edits.is_empty() {
            return Err(format!("{}: a mutant needs a `test:` and a `file:` line", mutant.name));
        }
        Ok(mutant)
    }

    pub(crate) fn concerns(&self, word: &str) -> bool {
        let names = self.tests.iter().map(String::as_str).chain(self.files());
        names.chain([self.name.as_str()]).any(|name| name.contains(word))
    }

    /// Returns the scripts that differ.
    pub(crate) fn scripts(&self) -> impl Iterator<Item = &str> {
        self.files().filter(|file| scripts::is_script(file))
    }

    /// Returns the names of the files that differ.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.edits.iter().map(|edit| edit.file.as_str())
    }

    /// Returns what differs in a file with this text.
    pub(crate) fn changes(&self, file: &str, text: &str) -> Option<Vec<Change>> {
        let edits = self.edits.iter().filter(|edit| edit.file == file);
        changes(text, edits.map(|edit| (edit.with.as_str(), edit.without.as_str())))
    }

    /// Returns the names and texts of the files below `root` with this mutant applied.
    pub(crate) fn applied(&self, root: &Path) -> Result<Vec<(&str, String)>, String> {
        self.applied_to(root, |_| true)
    }

    /// The same for some of the files.
    pub(crate) fn applied_to(
        &self,
        root: &Path,
        selects: impl Fn(&str) -> bool,
    ) -> Result<Vec<(&str, String)>, String> {
        let mut files: Vec<(&str, String)> = Vec::new();
        for Edit { file, with, without } in self.edits.iter().filter(|edit| selects(&edit.file)) {
            let text = match files.iter().position(|(name, _)| name == file) {
                Some(index) => files.remove(index).1,
                None => fs::read_to_string(root.join(file))
                    .map_err(|e| format!("{}: {file}: {e}", self.name))?,
            };
            match text.matches(with.as_str()).count() {
                1 => files.push((file, text.replacen(with.as_str(), without, 1))),
                count => {
                    let name = &self.name;
                    return Err(format!(
                        "{name}: occurs {count} times in {file} instead of once:\n{with}"
                    ));
                }
            }
        }
        Ok(files)
    }
}
