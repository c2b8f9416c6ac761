//! A counter and a set that several processes add to, each by reading all and writing all back.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use lockattr_history::Held;
use nix::fcntl::{Flock, FlockArg};

/// A resource in a file that compares fencing tokens, or believes everyone.
///
/// Unlike a [`Resource`](crate::Resource) it does not ask the lease: who comes late is not kept from it but
/// by the token.
#[derive(Clone, Debug)]
pub struct Ledger {
    path: PathBuf,
    fenced: bool,
}

impl Ledger {
    /// The same one for all who name the same path; its file is made where there is none.
    pub fn at(path: impl AsRef<Path>, fenced: bool) -> Self {
        Self { path: path.as_ref().to_owned(), fenced }
    }

    /// All that lies in it, for a caller that comes with this token; nothing if a greater one was here.
    ///
    /// # Panics
    ///
    /// When the file cannot be used, as all of its methods.
    pub fn read(&self, fence: u64) -> Option<Held> {
        self.with(fence, |held| held.clone())
    }

    /// Puts `all` in the place of what lies in it; `false` if a greater token was here.
    pub fn write(&self, fence: u64, all: Held) -> bool {
        self.with(fence, |held| *held = all).is_some()
    }

    /// All that lies in it, the caller.
    pub fn held(&self) -> Held {
        self.opened().1.1
    }

    /// One look, or change, that no other process comes between.
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

    /// The file, locked for as long as it is open, the greatest token and what lies in it.
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
