//! What the locks of several processes guard: a counter in a file that only grows.
//!
//! A holder reads the counter, takes some time, and writes it back one greater, so two holders at once write the same
//! value. Each line is one write.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockattr::Lease;
use lockattr_history::{Damage, Resource};
use tokio::time::sleep;

use crate::shared_file::{self, LINE};

/// A [`Resource`] that all processes with the same path share.
///
/// With a [`Lease`] ([`add`](Self::add), [`watch`](Self::watch)), it asks the lease *after* it has seen another
/// holder's token. If the lease is held even then, two holders overlap, however slow the machine is.
#[derive(Clone, Debug)]
pub struct ResourceFile {
    path: PathBuf,
    compares_tokens: bool,
}

/// Two holders at once, or the later one has the smaller token.
#[derive(Clone, Debug)]
pub struct Overlap {
    key: String,
    ours: u64,
    seen: u64,
}

impl std::error::Error for Overlap {}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, ours, seen } = self;
        write!(
            f,
            "the holder of `{key}` with token {ours} found that token {seen} used the resource"
        )
    }
}

/// A line: `+` for a read or `=` for a write, the counter after it, and the token that read or wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Line {
    wrote: bool,
    count: u64,
    token: u64,
}

impl Line {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let wrote = words.next()? == "=";
        Some(Self { wrote, count: words.next()?.parse().ok()?, token: words.next()?.parse().ok()? })
    }
}

impl ResourceFile {
    /// Names the file, which is created when it is first used.
    pub fn at(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned(), compares_tokens: false }
    }

    /// Makes [`read`](Self::read) and [`write`](Self::write) refuse a token smaller than the last one.
    #[must_use]
    pub fn comparing_tokens(self, compares_tokens: bool) -> Self {
        Self { compares_tokens, ..self }
    }

    /// Returns the path, for other processes.
    pub fn path(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    /// Returns the counter.
    ///
    /// # Panics
    ///
    /// If the file cannot be used, as all of its methods.
    pub fn count(&self) -> u64 {
        self.with(|_, last| last.count)
    }

    /// Reads the counter with this token, whatever lease it has. Returns `None` if the token is refused.
    pub fn read(&self, token: u64) -> Option<u64> {
        self.with(|file, last| {
            let allowed = self.allows(token, last);
            allowed.then(|| append(file, Line { wrote: false, count: last.count, token }))
        })
    }

    /// Writes the counter with this token. Returns whether the token is allowed.
    pub fn write(&self, count: u64, token: u64) -> bool {
        self.with(|file, last| {
            let allowed = self.allows(token, last);
            allowed.then(|| append(file, Line { wrote: true, count, token })).is_some()
        })
    }

    fn allows(&self, token: u64, last: Line) -> bool {
        !self.compares_tokens || token >= last.token
    }

    /// Adds one as the holder, with `pause` between reading and writing. Returns `false` if the lease ends before.
    ///
    /// # Errors
    ///
    /// [`Overlap`] if another holder was here while the lease is held.
    pub async fn add(&self, lease: &Lease, pause: Duration) -> Result<bool, Overlap> {
        let token = lease.fencing_token().get();
        let read = self.with(|file, last| {
            if last.token > token {
                return overlap(lease, last);
            }
            // A process that was stopped here does not write after its successor.
            if lease.ensure_held().is_err() {
                return Ok(None);
            }
            Ok(Some(append(file, Line { wrote: false, count: last.count, token })))
        })?;
        let Some(count) = read else { return Ok(false) };
        sleep(pause).await;
        let written = self.with(|file, last| {
            if last.token != token {
                return overlap(lease, last);
            }
            if lease.ensure_held().is_err() {
                return Ok(None);
            }
            Ok(Some(append(file, Line { wrote: true, count: count + 1, token })))
        })?;
        Ok(written.is_some())
    }

    /// Reads twice, as one of several holders that share the lock. Returns whether the lease lasted.
    ///
    /// # Errors
    ///
    /// [`Overlap`] if an exclusive holder was here while the lease is held.
    pub async fn watch(&self, lease: &Lease, pause: Duration) -> Result<bool, Overlap> {
        let before = self.with(|_, last| last);
        if lease.ensure_held().is_err() {
            return Ok(false);
        }
        sleep(pause).await;
        self.with(|_, last| match last == before {
            true => Ok(lease.ensure_held().is_ok()),
            false => overlap(lease, last).map(|never: Option<()>| never.is_some()),
        })
    }

    /// Returns the number of writes, and all damage.
    pub fn judged(&self) -> (u64, Vec<Damage>) {
        // There is no file if no process was here.
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let mut resource = Resource::default();
        for line in text.lines() {
            let Line { wrote, count, token } =
                Line::parse(line).unwrap_or_else(|| panic!("not a line: {line:?}"));
            if wrote { resource.write(count, token) } else { resource.visit(token) }
        }
        (resource.writes(), resource.damage().to_vec())
    }

    /// Reads or changes the file while no other process does.
    fn with<T>(&self, act: impl FnOnce(&mut File, Line) -> T) -> T {
        let mut file = shared_file::locked(&self.path);
        let last = last_of(&mut file).expect("the resource can be read");
        act(&mut file, last)
    }
}

fn last_of(file: &mut File) -> std::io::Result<Line> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(LINE as u64)))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text.lines().last().and_then(Line::parse).unwrap_or_default())
}

/// Returns the counter after the line.
fn append(file: &mut File, line: Line) -> u64 {
    let mark = if line.wrote { '=' } else { '+' };
    shared_file::append(file, &format!("{mark} {} {}", line.count, line.token));
    line.count
}

/// Judges another holder's token: the lease is lost, or two holders overlap.
fn overlap<T>(lease: &Lease, seen: Line) -> Result<Option<T>, Overlap> {
    let (key, ours) = (lease.key().to_string(), lease.fencing_token().get());
    match lease.ensure_held() {
        Ok(()) => Err(Overlap { key, ours, seen: seen.token }),
        Err(_) => Ok(None),
    }
}
