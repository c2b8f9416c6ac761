//! What the locks are for: a number for each key that everybody reads, thinks about, and writes back
//! one greater. It is exact in the end, or a lock was none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The numbers of a world; its clones are the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Arc<Mutex<BTreeMap<String, Entry>>>);

#[derive(Debug, Default)]
struct Entry {
    number: u64,
    written: u64,
    /// The greatest fencing token that wrote.
    fence: u64,
    /// Writes that a resource which knows fencing tokens would have refused.
    stale: u64,
}

impl Ledger {
    /// What stands there.
    #[must_use]
    pub(crate) fn read(&self, key: &str) -> u64 {
        self.entries().get(key).map_or(0, |entry| entry.number)
    }

    /// Writes what was made of it, without asking who else did.
    pub(crate) fn write(&self, key: &str, number: u64, fence: u64) {
        let mut entries = self.entries();
        let entry = entries.entry(key.to_owned()).or_default();
        entry.stale += u64::from(fence < entry.fence);
        entry.fence = entry.fence.max(fence);
        entry.number = number;
        entry.written += 1;
    }

    /// How often it was written to in all.
    #[must_use]
    pub(crate) fn written(&self) -> u64 {
        self.entries().values().map(|entry| entry.written).sum()
    }

    /// What is wrong with it.
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
