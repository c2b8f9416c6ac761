//! Builds the list of held locks from table rows, one row for each holder.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ListedName;
use crate::{HeldLock, HeldLocks, Holder};

/// The rows read so far, by key.
pub(crate) struct HeldLockRows<'a> {
    prefix: &'a str,
    by_key: BTreeMap<String, HeldLock>,
    /// Names that no key can have. One that several holders share has several rows.
    left_out: BTreeSet<Vec<u8>>,
}

impl<'a> HeldLockRows<'a> {
    /// For locks whose names begin with `prefix`.
    pub(crate) fn of(prefix: &'a str) -> Self {
        Self { prefix, by_key: BTreeMap::new(), left_out: BTreeSet::new() }
    }

    /// Adds one holder of the lock of this name, whose lease has `left` microseconds left. Of
    /// several holders, the one whose lease ends first comes first. A name that
    /// no key can have is counted.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8], left: i64, shared: bool, waiting: i64) {
        let key = match ListedName::read(self.prefix, name) {
            ListedName::Key(key) => key,
            ListedName::LeftOut => {
                self.left_out.insert(name.to_owned());
                return;
            }
            ListedName::Elsewhere => return,
        };
        let key = key.as_str();
        if let Some(held) = self.by_key.get_mut(key) {
            held.holders = held.holders.saturating_add(1);
            return;
        }
        let mut held = HeldLock::new(key, holder_of(value, Some(left)));
        held.shared = shared;
        held.waiting = u64::try_from(waiting).unwrap_or_default();
        self.by_key.insert(key.to_owned(), held);
    }

    pub(crate) fn held(self) -> HeldLocks {
        let mut held = HeldLocks::from(self.by_key.into_values().collect::<Vec<_>>());
        held.left_out = u64::try_from(self.left_out.len()).unwrap_or(u64::MAX);
        held
    }
}

/// The holder that wrote this value, and whose lease has `left` microseconds left, if that is
/// known.
pub(crate) fn holder_of(value: &[u8], left: Option<i64>) -> Holder {
    Holder::from_bytes(value, left.map(from_micros))
}

/// Converts a server's microseconds; a negative number means that no time is left.
pub(crate) fn from_micros(left: i64) -> Duration {
    Duration::from_micros(u64::try_from(left).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: the count of holders, the look at the prefix, or the set of names.
    #[test]
    fn holders_of_one_lock_are_one_lock() {
        let mut rows = HeldLockRows::of("lock:");
        rows.add(b"lock:a", b"0 service=first", 5, true, 2);
        rows.add(b"lock:a", b"1 service=second", 7, true, 2);
        rows.add(b"lock:b", b"2", -1, false, 0);
        rows.add(b"other:c", b"3", 1, false, 0);
        rows.add(b"lock:\xff", b"4", 1, true, 0);
        rows.add(b"lock:\xff", b"4", 1, true, 0);
        rows.add(b"lock:", b"5", 1, false, 0);
        let HeldLocks { locks: held, left_out } = rows.held();
        assert_eq!(left_out, 2);
        assert_eq!(held.iter().map(|held| held.key.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((held[0].holders, held[0].waiting, held[0].shared), (2, 2, true));
        assert_eq!(held[0].holder.service.as_deref(), Some("first"));
        assert_eq!(held[0].holder.remaining, Some(Duration::from_micros(5)));
        assert_eq!((held[1].holders, held[1].shared), (1, false));
    }
}
