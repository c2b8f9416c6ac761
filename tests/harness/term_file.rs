//! What the leaders of several processes write to: a resource in a file that compares the numbers of their terms.
//!
//! Each line is one [`TermEvent`], in the order in which the resource saw them.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use lockattr::Term;
use lockattr_history::{TermEvent, TermStep};

use crate::shared_file;

/// A resource that refuses a term after a later one has written. All processes with the same path share it.
#[derive(Clone, Debug)]
pub struct TermFile {
    path: PathBuf,
}

impl TermFile {
    /// Names the file, which is created when it is first used.
    pub fn at(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned() }
    }

    /// Returns the path, for other processes.
    pub fn path(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    /// Records that the body of a term begins or ends in this process.
    ///
    /// # Panics
    ///
    /// If the file cannot be used, as all of its methods.
    pub fn note(&self, process: u32, term: u64, step: TermStep) {
        self.with(|file, _| append(file, &TermEvent { process, term, step }));
    }

    /// Writes as the leader of this term, whatever its lease. Returns whether the resource accepts it.
    ///
    /// A leader that is refused is asked for its lease only then: if it holds it even now, two led at once, however
    /// slow the machine is.
    pub fn write(&self, process: u32, term: &Term) -> bool {
        let number = term.number().get();
        self.with(|file, newest| {
            let step = match newest > number {
                true => TermStep::Refused { held: term.ensure_held().is_ok() },
                false => TermStep::Wrote,
            };
            append(file, &TermEvent { process, term: number, step });
            step == TermStep::Wrote
        })
    }

    /// Returns all events so far.
    pub fn events(&self) -> Vec<TermEvent> {
        // There is no file if no process led.
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        // A process that was killed leaves a whole line or none.
        let event = |line| TermEvent::from_line(line).unwrap_or_else(|| panic!("line {line:?}"));
        text.lines().map(event).collect()
    }

    /// Reads or changes the file while no other process does. `act` gets the latest term that wrote.
    fn with<T>(&self, act: impl FnOnce(&mut File, u64) -> T) -> T {
        let mut file = shared_file::locked(&self.path);
        let newest = newest_in(&mut file).expect("the resource can be read");
        act(&mut file, newest)
    }
}

/// Returns the latest term that wrote: that of the last accepted write, as a smaller one is refused.
fn newest_in(file: &mut File) -> std::io::Result<u64> {
    file.rewind()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let latest_first = text.lines().rev().filter_map(TermEvent::from_line);
    let mut wrote = latest_first.filter(|event| event.step == TermStep::Wrote);
    Ok(wrote.next().map_or(0, |event| event.term))
}

fn append(file: &mut File, event: &TermEvent) {
    shared_file::append(file, event.to_line().trim_end());
}
