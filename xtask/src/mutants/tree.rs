//! Copies of the project to apply mutants to, so that the working tree stays unchanged: one for the
//! mutants that share a build, and one for the others.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::mutant::Mutant;
use super::{build, scripts};
use crate::child;

pub(crate) struct Tree {
    pub(crate) root: PathBuf,
}

impl Tree {
    /// Copies the files that git tracks or would add, with their current contents, or with those that
    /// `rewritten` returns.
    pub(crate) fn copied(
        name: &str,
        mut rewritten: impl FnMut(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let root = build::directory().join(name);
        let files = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(child::root())
            .output()
            .map_err(|error| format!("`git ls-files`: {error}"))?;
        for file in String::from_utf8_lossy(&files.stdout).lines() {
            let (from, to) = (child::root().join(file), root.join(file));
            // Skips links, and files that are deleted but not yet committed.
            let Ok(mut text) = fs::read(&from) else { continue };
            if let Some(rewritten) = rewritten(file) {
                text = rewritten.into_bytes();
            } else if scripts::is_script(file) {
                text.extend(scripts::PADDING);
            }
            // An unchanged file is not written, so that it is not built again.
            if fs::read(&to).is_ok_and(|old| old == text) {
                continue;
            }
            let directory = to.parent().expect("the file is in the copy");
            let copied = fs::create_dir_all(directory).and_then(|()| fs::write(&to, text));
            copied.map_err(|error| format!("{}: {error}", to.display()))?;
        }
        Ok(Self { root })
    }

    /// Runs `test` with `mutant`, and restores the code.
    pub(crate) fn with<T>(
        &self,
        mutant: &Mutant,
        test: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let mut originals = Vec::new();
        for (file, text) in mutant.applied(&self.root)? {
            originals.push((file, self.read(file)?));
            self.write(file, &text)?;
        }
        let outcome = test();
        for (file, text) in originals {
            self.write(file, &text)?;
        }
        outcome
    }

    pub(crate) fn read(&self, file: &str) -> Result<String, String> {
        fs::read_to_string(self.root.join(file)).map_err(|error| format!("{file}: {error}"))
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        fs::write(self.root.join(file), text).map_err(|error| format!("{file}: {error}"))
    }
}
