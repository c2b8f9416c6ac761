//! Which mutants share a build, and the files of that build.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use super::bodies::{bodies, innermost, is_body};
use super::change::{Change, changed};
use super::mutant::Mutant;
use super::scripts;
use super::switch::{Arm, switched};

pub(crate) struct Plan {
    /// The Rust files that mutants edit.
    files: BTreeMap<String, File>,
    /// The mutants that need a build of their own.
    alone: BTreeSet<usize>,
}

struct File {
    text: String,
    bodies: Vec<Range<usize>>,
    arms: Vec<Arm>,
    /// The lines of the arms in the file as it was written last.
    lines: Vec<(RangeInclusive<usize>, usize)>,
}

impl Plan {
    /// The plan for the mutants of the code below `root`.
    pub(crate) fn of(mutants: &[Mutant], root: &Path) -> Result<Self, String> {
        let mut plan = Self { files: BTreeMap::new(), alone: BTreeSet::new() };
        for mutant in mutants {
            for file in mutant.files().filter(|file| !scripts::is_script(file)) {
                if !plan.files.contains_key(file) {
                    plan.files.insert(file.to_owned(), File::read(root, file)?);
                }
            }
            if !plan.takes(mutant) {
                plan.alone.insert(mutant.number);
            }
        }
        Ok(plan)
    }

    /// Adds the arms of a mutant, or returns `false`.
    fn takes(&mut self, mutant: &Mutant) -> bool {
        // The attribute runs in the compiler.
        let at_compile_time = |file: &str| file.starts_with("lockattr-macros/");
        if mutant.files().any(at_compile_time) {
            return false;
        }
        let of_rust: BTreeSet<&str> =
            mutant.files().filter(|file| !scripts::is_script(file)).collect();
        let mut all = Vec::new();
        for name in of_rust {
            let file = &self.files[name];
            let Some(arms) = mutant.changes(name, &file.text).and_then(|it| file.arms(mutant, &it))
            else {
                return false;
            };
            all.push((name, arms));
        }
        for (name, arms) in all {
            self.files.get_mut(name).expect("it was just read").arms.extend(arms);
        }
        true
    }

    /// Returns what a file of the shared build has, or `None` if no mutant edits it.
    pub(crate) fn switched(&mut self, file: &str) -> Option<String> {
        let file = self.files.get_mut(file)?;
        let switched = switched(&file.text, &file.arms);
        file.lines = switched.lines;
        Some(switched.text)
    }

    pub(crate) fn is_alone(&self, mutant: &Mutant) -> bool {
        self.alone.contains(&mutant.number)
    }

    /// Returns the mutant whose code is in this line.
    pub(crate) fn mutant_at(&self, file: &str, line: usize) -> Option<usize> {
        let lines = &self.files.get(file)?.lines;
        lines.iter().find_map(|(lines, mutant)| lines.contains(&line).then_some(*mutant))
    }

    /// Takes a mutant out of the shared build.
    pub(crate) fn exclude(&mut self, mutant: usize) {
        self.alone.insert(mutant);
        for file in self.files.values_mut() {
            file.arms.retain(|arm| arm.mutant != mutant);
        }
    }
}

impl File {
    fn read(root: &Path, file: &str) -> Result<Self, String> {
        let text = fs::read_to_string(root.join(file)).map_err(|e| format!("{file}: {e}"))?;
        let bodies = bodies(&text).map_err(|error| format!("{file}: {error}"))?;
        Ok(Self { text, bodies, arms: Vec::new(), lines: Vec::new() })
    }

    /// Returns an arm for each body that these changes are in.
    fn arms(&self, mutant: &Mutant, changes: &[Change]) -> Option<Vec<Arm>> {
        let found = changes.iter().map(|change| innermost(&self.bodies, &change.range));
        let bodies = found.collect::<Option<Vec<_>>>()?;
        let mut arms = Vec::<Arm>::new();
        for body in bodies {
            if arms.iter().any(|arm| arm.body == body) {
                continue;
            }
            let is_within = |it: &&Change| body.start <= it.range.start && it.range.end <= body.end;
            let changes: Vec<Change> = changes.iter().filter(is_within).cloned().collect();
            let text = changed(&self.text, &body, &changes);
            if !is_body(&text) {
                return None;
            }
            arms.push(Arm { body, mutant: mutant.number, text });
        }
        Some(arms)
    }
}
