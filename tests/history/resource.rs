//! What a lock guards: a counter that each holder reads, and writes back one greater.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The counter, and what overlapping holders did to it.
#[derive(Clone, Debug, Default)]
pub struct Resource {
    /// The value of the last write.
    count: u64,
    writes: u64,
    /// The token of the last write.
    written_by: u64,
    /// The greatest token that read or wrote.
    newest: u64,
    damage: Vec<Damage>,
}

/// What a lock must prevent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A write did not count on from the write before it.
    LostUpdate {
        /// What it wrote.
        count: u64,
        /// The number of writes, with this one.
        writes: u64,
        /// The token that wrote.
        by: u64,
        /// The token of the write that is lost.
        over: u64,
    },
    /// A smaller token came after a greater one.
    StaleToken {
        /// The smaller token.
        token: u64,
        /// The greatest token before it.
        after: u64,
    },
}

impl Resource {
    /// Reads the counter.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.count
    }

    /// Records that the holder with this token read or wrote.
    pub fn visit(&mut self, token: u64) {
        if token < self.newest {
            self.damage.push(Damage::StaleToken { token, after: self.newest });
        }
        self.newest = self.newest.max(token);
    }

    /// Writes the counter as the holder with this token.
    pub fn write(&mut self, count: u64, token: u64) {
        self.visit(token);
        self.writes += 1;
        // Later writers count on from this write, so an update is reported lost only once.
        if count != self.count + 1 {
            let (writes, over) = (self.writes, self.written_by);
            self.damage.push(Damage::LostUpdate { count, writes, by: token, over });
        }
        (self.count, self.written_by) = (count, token);
    }

    /// Returns the greatest token that read or wrote.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Returns how often the counter was written.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Returns all damage, in the order in which it was done.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }
}

/// The resources that the locks of a test guard, by key. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Resources(Arc<Mutex<BTreeMap<String, Resource>>>);

impl Resources {
    /// Reads or changes the resource of this key.
    pub fn with<T>(&self, key: &str, act: impl FnOnce(&mut Resource) -> T) -> T {
        let mut resources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        act(resources.entry(key.to_owned()).or_default())
    }

    /// Adds one as the holder with this token, who has just checked the lease.
    pub fn add(&self, key: &str, token: u64) {
        self.with(key, |resource| resource.write(resource.read() + 1, token));
    }

    /// Returns how often the resource of this key was written.
    #[must_use]
    pub fn writes_of(&self, key: &str) -> u64 {
        self.with(key, |resource| resource.writes())
    }

    /// Returns how often all of them were written.
    #[must_use]
    pub fn writes(&self) -> u64 {
        let resources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        resources.values().map(Resource::writes).sum()
    }

    /// Returns all damage, each with its key.
    #[must_use]
    pub fn damage(&self) -> Vec<String> {
        let resources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let damage = resources.iter().flat_map(|(key, resource)| {
            resource.damage().iter().map(move |damage| format!("`{key}`: {damage}"))
        });
        damage.collect()
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LostUpdate { count, writes, by, over } => write!(
                f,
                "an update is lost: write {writes}, by token {by}, wrote {count} over the write of token {over}"
            ),
            Self::StaleToken { token, after } => {
                write!(f, "token {token} came after {after}: a smaller token")
            }
        }
    }
}
