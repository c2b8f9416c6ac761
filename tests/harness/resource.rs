//! An append-only file with numbered entries, guarded by the locks of several processes.
//!
//! A process that adds an entry reads the last number, pauses, and writes the next: two holders at
//! once write the same number. Each line is a single write, so a killed process leaves a whole line
//! or none, and the count stays exact whichever process dies.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockattr::Lease;
use nix::fcntl::{Flock, FlockArg};
use tokio::time::sleep;

/// Detects two holders at once, in any processes.
///
/// It checks the lease *after* it has seen another holder's token: if the lease is still valid
/// then, there were two holders at once, however slow the machine is.
#[derive(Clone, Debug)]
pub struct Resource(PathBuf);

/// Two holders at once, or a later holder with a smaller token.
#[derive(Clone, Debug)]
pub struct Fenced {
    key: String,
    ours: u64,
    seen: u64,
}

impl std::error::Error for Fenced {}

impl fmt::Display for Fenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, ours, seen } = self;
        write!(f, "`{key}` is held by token {ours}, and token {seen} was here")
    }
}

/// One line: a holder entered (`+`) or added an entry (`=`), its token, and the number of entries
/// so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Line {
    added: bool,
    count: u64,
    token: u64,
}

impl Line {
    fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let added = words.next()? == "=";
        Some(Self { added, count: words.next()?.parse().ok()?, token: words.next()?.parse().ok()? })
    }
}

/// The length of the longest line, at most.
const LONGEST: u64 = 64;

impl Resource {
    /// Opens the resource at a path, shared by all processes that use the same path. The file is
    /// created if it is missing.
    pub fn at(path: impl AsRef<Path>) -> Self {
        Self(path.as_ref().to_owned())
    }

    /// Returns its path, for other processes.
    pub fn path(&self) -> std::path::Display<'_> {
        self.0.display()
    }

    /// Returns the number of entries.
    ///
    /// # Panics
    ///
    /// If the file cannot be used. So do all methods.
    pub fn count(&self) -> u64 {
        self.with(|_, last| last.count)
    }

    /// Adds an entry as the holder, with a `pause` between reading and writing. Returns `false` if
    /// the lease ended first.
    ///
    /// # Errors
    ///
    /// [`Fenced`] if another holder was here although the lease is still valid.
    pub async fn add(&self, lease: &Lease, pause: Duration) -> Result<bool, Fenced> {
        let token = lease.fencing_token().get();
        let read = self.with(|file, last| {
            if last.token > token {
                return beside(lease, last);
            }
            // A process that was paused here must not write after its successor.
            if lease.ensure_held().is_err() {
                return Ok(None);
            }
            append(file, Line { added: false, count: last.count, token });
            Ok(Some(last.count))
        })?;
        let Some(count) = read else { return Ok(false) };
        sleep(pause).await;
        let written = self.with(|file, last| {
            if last.token != token {
                return beside(lease, last);
            }
            if lease.ensure_held().is_err() {
                return Ok(None);
            }
            append(file, Line { added: true, count: count + 1, token });
            Ok(Some(()))
        })?;
        Ok(written.is_some())
    }

    /// Reads twice, as a shared holder, and returns whether the lease lasted until the end.
    ///
    /// # Errors
    ///
    /// [`Fenced`] if another holder was here meanwhile although the lease is still valid.
    pub async fn watch(&self, lease: &Lease, pause: Duration) -> Result<bool, Fenced> {
        let before = self.with(|_, last| last);
        if lease.ensure_held().is_err() {
            return Ok(false);
        }
        sleep(pause).await;
        self.with(|_, last| match last == before {
            true => Ok(lease.ensure_held().is_ok()),
            false => beside(lease, last).map(|never: Option<()>| never.is_some()),
        })
    }

    /// Returns the number of entries, and the violations found in them.
    pub fn judged(&self) -> (u64, Vec<String>) {
        // Without any holder there is no file.
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        let (mut entries, mut wrong, mut last) = (0, Vec::new(), Line::default());
        for line in text.lines() {
            let Some(line) = Line::read(line) else {
                wrong.push(format!("a line that is none: {line:?}"));
                continue;
            };
            if line.token < last.token {
                wrong.push(format!("{} wrote after {}: a smaller token", line.token, last.token));
            }
            entries += u64::from(line.added);
            if line.count != entries {
                wrong.push(format!(
                    "entry {entries} says that it is entry {}, by token {}: an update is lost",
                    line.count, line.token
                ));
                // Each gap is reported once.
                entries = line.count;
            }
            last = line;
        }
        (entries, wrong)
    }

    /// Runs `act` on the file and its last line, under the file lock.
    fn with<T>(&self, act: impl FnOnce(&mut File, Line) -> T) -> T {
        let open = OpenOptions::new().read(true).append(true).create(true).open(&self.0);
        let file = open.unwrap_or_else(|error| panic!("{}: {error}", self.0.display()));
        let locked = Flock::lock(file, FlockArg::LockExclusive);
        let mut file = locked.unwrap_or_else(|(_, error)| panic!("a file lock: {error}"));
        let last = last_of(&mut file).expect("the resource can be read");
        act(&mut file, last)
    }
}

fn last_of(file: &mut File) -> std::io::Result<Line> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(LONGEST)))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text.lines().last().and_then(Line::read).unwrap_or_default())
}

fn append(file: &mut File, line: Line) {
    let mark = if line.added { '=' } else { '+' };
    let line = format!("{mark} {} {}\n", line.count, line.token);
    file.write_all(line.as_bytes()).expect("the resource can be written");
}

/// Judges another holder's presence: an error if the lease is still valid.
fn beside<T>(lease: &Lease, seen: Line) -> Result<Option<T>, Fenced> {
    let (key, ours) = (lease.key().to_string(), lease.fencing_token().get());
    match lease.ensure_held() {
        Ok(()) => Err(Fenced { key, ours, seen: seen.token }),
        Err(_) => Ok(None),
    }
}
