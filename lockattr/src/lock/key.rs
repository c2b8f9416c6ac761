//! Keys: what a caller locks, and the name of the lock in the store.

use std::fmt;

use crate::Error;

/// The longest key in bytes, after escaping and without the prefix.
pub(crate) const MAX_KEY_BYTES: usize = 1024;

/// A checked key, and the prefix that separates applications in one store.
///
/// ```
/// use lockattr::store::LockKey;
///
/// let key = LockKey::new("lock:", "product:42")?;
/// assert_eq!(key.as_str(), "product:42");
/// assert_eq!(key.name(), "lock:product:42");
/// # Ok::<(), lockattr::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LockKey {
    name: Box<str>,
    prefix: usize,
}

impl LockKey {
    /// Checks `key` and prepends `prefix`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`] if the key is empty or longer than 1 KiB.
    pub fn new(prefix: &str, key: &str) -> Result<Self, Error> {
        if key.is_empty() {
            return Err(Error::InvalidKey("the key is empty: name what to lock".into()));
        }
        if key.len() > MAX_KEY_BYTES {
            let start: String = key.chars().take(40).collect();
            return Err(Error::InvalidKey(format!(
                "the key `{start}…` has {} bytes, and at most {MAX_KEY_BYTES} are allowed: lock a \
                 digest of it",
                key.len()
            )));
        }
        Ok(Self { name: [prefix, key].concat().into(), prefix: prefix.len() })
    }

    /// The name of a note about this lock: as long as it has to be.
    #[cfg(feature = "share")]
    pub(crate) fn note(&self, prefix: &str) -> Self {
        Self { name: [prefix, &self.name].concat().into(), prefix: prefix.len() }
    }

    /// The lock with this name in the store, prefix included.
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.into(), prefix: 0 }
    }

    /// The key as the caller named it.
    pub fn as_str(&self) -> &str {
        &self.name[self.prefix..]
    }

    /// Prefix and key: the name of the lock in the store.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Sorts the keys and removes duplicates. All calls use this order, so that two calls that name the
/// same keys cannot deadlock.
pub(crate) fn sorted_unique(mut keys: Vec<LockKey>) -> Vec<LockKey> {
    keys.sort_by(|one, other| one.name().cmp(other.name()));
    keys.dedup();
    keys
}

pub(crate) fn named(keys: &[LockKey]) -> String {
    keys.iter().map(LockKey::as_str).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockKey({:?})", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{LockKey, sorted_unique};

    /// Red without: the prefix stored apart from the key.
    #[test]
    fn a_key_is_shown_to_people_without_its_prefix_and_to_the_store_with_it() {
        let key = LockKey::new("lock:", "product:42").unwrap();
        assert_eq!((key.as_str(), key.name()), ("product:42", "lock:product:42"));
        assert_eq!(key.to_string(), "product:42");
        assert_eq!(format!("{key:?}"), "LockKey(\"lock:product:42\")");
    }

    /// Red without: `sort_by` or `dedup`.
    #[test]
    fn several_keys_have_one_order_and_each_counts_once() {
        let key = |key| LockKey::new("lock:", key).unwrap();
        let ordered = [key("a"), key("b"), key("c")];
        for named in [["c", "a", "b", "a"], ["b", "b", "c", "a"]] {
            assert_eq!(sorted_unique(named.map(key).to_vec()), ordered);
        }
    }
}
