//! Mutants of Lua and SQL: the text of a script is replaced in the programs of the shared build, which
//! embed it. The library knows nothing of this.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::mutant::Mutant;
use super::shared::Shared;

/// Follows each script in the copy, because a mutant may be longer than the script.
pub(crate) const PADDING: [u8; 256] = [b' '; 256];

pub(crate) fn is_script(file: &str) -> bool {
    file.starts_with("lockattr/src/") && [".lua", ".sql"].iter().any(|end| file.ends_with(end))
}

/// The programs of the shared build, with the places of the scripts in them.
pub(crate) struct Patched<'a> {
    shared: &'a Shared,
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
    /// Finds the scripts of these mutants in the programs.
    pub(crate) fn of(shared: &'a Shared, mutants: &[&Mutant]) -> Result<Self, String> {
        let tree = &shared.tree;
        let scripts: BTreeSet<&str> = mutants.iter().flat_map(|mutant| mutant.scripts()).collect();
        let sources = scripts.iter().map(|script| tree.root.join(script));
        let mut places = Vec::new();
        for file in sources.chain(shared.build.files.iter().cloned()) {
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
            None => Ok(Self { shared, places }),
        }
    }

    /// Runs `test` with the scripts of this mutant, and restores the programs.
    pub(crate) fn with<T>(
        &self,
        mutant: &Mutant,
        test: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let (mut mutated, mut originals) = (Vec::new(), Vec::new());
        // The Rust files of the same mutant are in the programs already.
        let applied = mutant.applied_to(&self.shared.tree.root, is_script)?;
        for (script, text) in applied {
            let original = self.shared.tree.read(script)?.into_bytes();
            let fitted = fitted(&text, original.len());
            mutated.push((script, fitted.ok_or(format!("{}: much longer", mutant.name))?));
            originals.push((script, original));
        }
        // If this program is interrupted, cargo sees that the programs are old, and builds them.
        let outcome = self.write(&mutated, |_| SystemTime::UNIX_EPOCH).and_then(|()| test());
        self.write(&originals, |place| place.modified)?;
        outcome
    }

    /// Writes these texts to all places of the scripts.
    fn write(
        &self,
        texts: &[(&str, Vec<u8>)],
        modified: impl Fn(&Place) -> SystemTime,
    ) -> Result<(), String> {
        for (script, text) in texts {
            for place in self.places.iter().filter(|place| place.script == *script) {
                let written = opened(&place.file).and_then(|file| {
                    file.write_all_at(text, place.offset)?;
                    file.set_modified(modified(place))
                });
                written.map_err(|error| format!("{}: {error}", place.file.display()))?;
            }
        }
        Ok(())
    }
}

/// Opens a program for writing. A process that a test left behind may still run it, and keeps the old
/// file then.
fn opened(program: &Path) -> io::Result<File> {
    match File::options().write(true).open(program) {
        Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
            let copy = program.with_extension("copy");
            fs::copy(program, &copy)?;
            fs::rename(&copy, program)?;
            File::options().write(true).open(program)
        }
        opened => opened,
    }
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
