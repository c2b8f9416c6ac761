//! The text of an entry: the claim's value, the length of its lease, and its keys if there are
//! several.

use std::fmt::Write;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::Holder;
use crate::store::{Claim, LockKey};

/// These words follow the claim's value. Readers skip words that they do not know.
const LEASE: &str = " lease=";
const KEYS: &str = " keys=";

/// Returns the text of the entries of a claim.
pub(crate) fn entry_value(claim: &Claim, ttl: Duration) -> String {
    let mut value = claim.value().to_owned();
    // Writing to a string cannot fail.
    let _never = write!(value, "{LEASE}{}", ttl.as_millis());
    if let keys @ [_, _, ..] = claim.keys() {
        let names = keys.iter().map(|key| utf8_percent_encode(key.name(), NON_ALPHANUMERIC));
        let names: Vec<_> = names.map(|name| name.to_string()).collect();
        value.push_str(KEYS);
        value.push_str(&names.join(","));
    }
    value
}

/// Returns the holder that wrote this text. Its remaining time is the whole lease, which is the
/// most unless a renewal made it longer: only the holder knows how much is left.
pub(super) fn holder(value: &str) -> Holder {
    let lease = word(value, LEASE).and_then(|millis| millis.parse().ok());
    Holder::from_value(value, lease.map(Duration::from_millis))
}

/// Returns the keys of its claim, if there are several.
pub(super) fn keys(value: &str) -> Vec<LockKey> {
    let names = word(value, KEYS).into_iter().flat_map(|names| names.split(','));
    let names = names.map(|name| percent_decode_str(name).decode_utf8_lossy());
    names
        .filter_map(|name| {
            // Only the whole name counts here, and a prefix may have any length.
            let last = name.char_indices().next_back()?.0;
            LockKey::new(&name[..last], &name[last..]).ok()
        })
        .collect()
}

fn word<'a>(value: &'a str, name: &str) -> Option<&'a str> {
    // The last one: a label comes before it, and cannot contain a space anyway.
    let (_, rest) = value.rsplit_once(name)?;
    rest.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Sharing, Subscriber};

    #[test]
    fn what_is_written_is_read() {
        let key = |name: &str| LockKey::new("a lock,", name).unwrap();
        let subscriber = Subscriber::new(|_| {});
        let label = "service=a%20b lease%3D=7";
        let claim = Claim::of(&subscriber, key("ä,b"), [key("c/d\0")], Sharing::Exclusive, label);
        let value = entry_value(&claim, Duration::from_millis(1500));
        let read = holder(&value);
        assert_eq!(read.service.as_deref(), Some("a b"));
        assert_eq!(read.remaining, Some(Duration::from_millis(1500)));
        let names: Vec<_> = keys(&value).iter().map(|key| key.name().to_owned()).collect();
        assert_eq!(names, claim.keys().iter().map(LockKey::name).collect::<Vec<_>>());
        // A single key is not written: the entry is in its queue.
        assert!(keys(&entry_value(&Claim::new(key("x"), ""), Duration::ZERO)).is_empty());
    }
}
