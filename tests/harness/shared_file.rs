//! Files to which several processes append lines. A process that is killed leaves a whole line or none.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};

/// The bytes of a line. Linux writes a file page by page, so a line across two pages could be read or left in part.
pub(crate) const LINE: usize = 128;

/// Opens the file, which is created when it is first used, once no other process has it open in this way.
///
/// # Panics
///
/// If the file cannot be used.
pub(crate) fn locked(path: &Path) -> Flock<File> {
    let open = OpenOptions::new().read(true).append(true).create(true).open(path);
    let file = open.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let locked = Flock::lock(file, FlockArg::LockExclusive);
    locked.unwrap_or_else(|(_, error)| panic!("a file lock: {error}"))
}

/// Appends this text, with spaces up to the end of its line.
///
/// # Panics
///
/// If it is too long, or the file cannot be written.
pub(crate) fn append(file: &mut File, text: &str) {
    let line = format!("{text:<0$}\n", LINE - 1);
    assert_eq!(line.len(), LINE, "{text:?}");
    file.write_all(line.as_bytes()).expect("the resource can be written");
}
