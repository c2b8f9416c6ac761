//! What the locks protect: a number for each key, which tasks read and write back incremented.
//!
//! If a lock failed, the number is not exact in the end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The numbers of a world; clones are the same numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Arc<Mutex<BTreeMap<String, Entry>>>);

#[derive(Debug, Default)]
struct Entry {
    number: u64,
    written: u64,
    /// The greatest fencing token of a write.
    fence: u64,
    /// Writes that a resource with fencing would have refused.
    stale: u64,
}

impl Ledger {
    /// Returns the number of `key`.
    #[must_use]
    pub(crate) fn read(&self, key: &str) -> u64 {
        self.entries().get(key).map_or(0, |entry| entry.number)
    }

    /// Writes a number, without checking for other writes.
    pub(crate) fn write(&self, key: &str, number: u64, fence: u64) {
        let mut entries = self.entries();
        let entry = entries.entry(key.to_owned()).or_default();
        entry.stale += u64::from(fence < entry.fence);
        entry.fence = entry.fence.max(fence);
        entry.number = number;
        entry.written += 1;
    }

    /// Returns the number of writes.
    #[must_use]
    pub(crate) fn written(&self) -> u64 {
        self.entries().values().map(|entry| entry.written).sum()
    }

    /// Returns what is wrong with the numbers.
    #[must_use]
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (key, Entry { number, written, stale, .. }) in &*self.entries() {
            if number != written {
                faults.push(format!("`{key}` was counted {written} times and stands at {number}"));
            }
            if *stale > 0 {
                faults.push(format!("`{key}` was written {stale} times with an old fencing token"));
            }
        }
        faults
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
