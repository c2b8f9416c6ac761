//! A counter and a set in a file, which several processes read and write back as a whole.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use lockattr_history::Held;
use nix::fcntl::{Flock, FlockArg};

/// A resource in a file that either compares fencing tokens or accepts every write.
///
/// Unlike a [`Resource`](crate::Resource) it does not check the lease: only the token can stop a
/// late writer.
#[derive(Clone, Debug)]
pub struct Ledger {
    path: PathBuf,
    fenced: bool,
}

impl Ledger {
    /// Opens the resource at a path, shared by all processes that use the same path. The file is
    /// created if it is missing.
    pub fn at(path: impl AsRef<Path>, fenced: bool) -> Self {
        Self { path: path.as_ref().to_owned(), fenced }
    }

    /// Returns the contents, or `None` if the resource has seen a greater token.
    ///
    /// # Panics
    ///
    /// If the file cannot be used. So do all methods.
    pub fn read(&self, fence: u64) -> Option<Held> {
        self.with(fence, |held| held.clone())
    }

    /// Replaces the contents. Returns `false` if the resource has seen a greater token.
    pub fn write(&self, fence: u64, all: Held) -> bool {
        self.with(fence, |held| *held = all).is_some()
    }

    /// Returns the contents without checking a token.
    pub fn held(&self) -> Held {
        self.opened().1.1
    }

    /// Runs `act` on the contents under the file lock, and writes them back.
    fn with<T>(&self, fence: u64, act: impl FnOnce(&mut Held) -> T) -> Option<T> {
        let (mut file, (last, mut held)) = self.opened();
        if self.fenced && fence < last {
            return None;
        }
        let output = act(&mut held);
        let mut words = vec![fence.max(last), held.count];
        words.extend(&held.elements);
        let words: Vec<String> = words.iter().map(u64::to_string).collect();
        let done = file.set_len(0).and_then(|()| file.rewind());
        let done = done.and_then(|()| file.write_all(words.join(" ").as_bytes()));
        done.unwrap_or_else(|error| panic!("{}: {error}", self.path.display()));
        Some(output)
    }

    /// Returns the file, locked while it is open, the greatest token, and the contents.
    fn opened(&self) -> (Flock<File>, (u64, Held)) {
        let open =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&self.path);
        let file = open.unwrap_or_else(|error| panic!("{}: {error}", self.path.display()));
        let locked = Flock::lock(file, FlockArg::LockExclusive);
        let mut file = locked.unwrap_or_else(|(_, error)| panic!("{error}"));
        let mut text = String::new();
        file.read_to_string(&mut text).expect("our own text");
        let mut words = text.split(' ').filter_map(|word| word.parse().ok());
        let (last, count) = (words.next().unwrap_or(0), words.next().unwrap_or(0));
        (file, (last, Held { count, elements: words.collect() }))
    }
}
