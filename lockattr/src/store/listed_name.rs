//! Which names in a store a list of held locks can show.

use super::LockKey;

/// What a name in the store is to a list of the locks under a prefix.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ListedName {
    /// That of this key.
    Key(LockKey),
    /// It begins with the prefix, but no key can have it: it is not UTF-8, too long, or the prefix
    /// alone. Another program has written it.
    LeftOut,
    /// It does not begin with the prefix.
    Elsewhere,
}

impl ListedName {
    pub(crate) fn read(prefix: &str, name: &[u8]) -> Self {
        let Some(key) = name.strip_prefix(prefix.as_bytes()) else { return Self::Elsewhere };
        let key = std::str::from_utf8(key).ok().and_then(|key| LockKey::new(prefix, key).ok());
        key.map_or(Self::LeftOut, Self::Key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_key_or_left_out_or_of_another_prefix() {
        let long = |bytes| ["lock:", &"k".repeat(bytes)].concat();
        let key = |key: &str| ListedName::Key(LockKey::new("lock:", key).unwrap());
        for (name, expected) in [
            (&b"lock:a\0"[..], key("a\0")),
            (long(1024).as_bytes(), key(&"k".repeat(1024))),
            (long(1025).as_bytes(), ListedName::LeftOut),
            (b"lock:\xff", ListedName::LeftOut),
            (b"lock:", ListedName::LeftOut),
            (b"lock", ListedName::Elsewhere),
            (b"\xfflock:a", ListedName::Elsewhere),
        ] {
            assert_eq!(ListedName::read("lock:", name), expected, "{name:?}");
        }
    }
}
