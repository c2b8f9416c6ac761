//! The names of entries in etcd: `<name>/<mode>-<token>-<lease>`. Pure. The token is one of the
//! session's, which [names another claim with it](super::entry_names) when this one is gone.

use std::borrow::Cow;
use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, percent_decode, utf8_percent_encode};

use super::messages::KeyValue;
use crate::engines::sequenced::{Entry, EntryValue, LockQueue, LockQueues};
use crate::store::{ListedName, LockKey, OwnerToken, Sharing};

/// With `/` escaped, no queue lies within another.
const ESCAPED: &AsciiSet = &AsciiSet::EMPTY.add(b'%').add(b'/');

/// Returns the prefix that all keys of this queue have, and no others.
pub(super) fn queue_prefix(key: &LockKey) -> String {
    let name: Cow<'_, str> = utf8_percent_encode(key.name(), ESCAPED).into();
    [&name, "/"].concat()
}

/// Returns the end of the range of keys with this prefix: `0` comes next after `/`.
pub(super) fn range_end_of(queue: &str) -> Vec<u8> {
    let mut end = queue.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

/// Returns the key of a session, which is removed with its lease.
pub(super) fn session(lease: i64) -> String {
    format!("{SESSIONS}{lease:x}")
}

/// The prefix of the keys of all sessions.
pub(super) const SESSIONS: &str = "lockattr/session/";

/// Returns an entry's name within its queue. The token is not that of its claim. The session is a
/// part of it, so that an entry of an earlier session is not taken for one of this.
pub(super) fn entry_name(token: OwnerToken, sharing: Sharing, several: bool, lease: i64) -> String {
    let several = if several { "+" } else { "" };
    match sharing {
        Sharing::Exclusive => format!("x{several}-{token}-{lease:x}"),
        Sharing::Shared => format!("s{several}-{token}-{lease:x}"),
        Sharing::Permits(most) => format!("p{most}{several}-{token}-{lease:x}"),
    }
}

/// Returns the lease of the session that made an entry.
pub(super) fn lease(entry: &Entry) -> Option<i64> {
    u64::from_str_radix(entry.id.rsplit('-').next()?, 16).ok().map(u64::cast_signed)
}

/// Returns the entries of a queue, head first. Skips keys that another program put there.
pub(super) fn entries(queue: &str, mut found: Vec<KeyValue>) -> Vec<Entry> {
    found.sort_by_key(|kv| kv.create_revision);
    found.iter().filter_map(|kv| entry(queue, kv)).collect()
}

/// Returns the prefix of the keys of all queues whose names begin with `prefix`.
pub(super) fn encoded_prefix(prefix: &str) -> String {
    utf8_percent_encode(prefix, ESCAPED).to_string()
}

/// Returns the queues of these keys whose names begin with `prefix`. Skips keys of other programs.
pub(super) fn queues(prefix: &str, found: Vec<KeyValue>) -> LockQueues {
    let mut by_queue = BTreeMap::<_, Vec<_>>::new();
    for kv in found {
        let Some(end) = kv.key.iter().position(|byte| *byte == b'/') else { continue };
        by_queue.entry(kv.key[..end].to_vec()).or_default().push(kv);
    }
    let mut read = LockQueues::default();
    for (name, found) in by_queue {
        match ListedName::read(prefix, &percent_decode(&name).collect::<Vec<_>>()) {
            ListedName::Key(key) => read.queues.extend(lock_queue(key, &name, found)),
            ListedName::LeftOut => read.left_out += 1,
            ListedName::Elsewhere => {}
        }
    }
    read
}

/// Returns the queue of this key with these entries, if it has any under this name.
fn lock_queue(key: LockKey, name: &[u8], found: Vec<KeyValue>) -> Option<LockQueue> {
    let queue = queue_prefix(&key);
    // Another program may encode the same name in another way.
    if queue.as_bytes().strip_suffix(b"/") != Some(name) {
        return None;
    }
    let id = |kv: &KeyValue| Some(std::str::from_utf8(&kv.key).ok()?.into());
    let written = found.iter().filter_map(|kv| Some((id(kv)?, written(kv)))).collect();
    let entries = entries(&queue, found);
    (!entries.is_empty()).then_some(LockQueue { key, entries, written })
}

/// Returns the text of an entry, and its number.
pub(super) fn written(kv: &KeyValue) -> EntryValue {
    let value = String::from_utf8_lossy(&kv.value).into_owned();
    EntryValue { value, counter: u64::try_from(kv.create_revision).unwrap_or_default() }
}

fn entry(queue: &str, kv: &KeyValue) -> Option<Entry> {
    let id = std::str::from_utf8(&kv.key).ok()?;
    let mut words = id.strip_prefix(queue)?.split('-');
    let (mode, token, _lease) = (words.next()?, words.next()?, words.next()?);
    let (mode, several) = match mode.strip_suffix('+') {
        Some(mode) => (mode, true),
        None => (mode, false),
    };
    let sharing = match (mode, mode.strip_prefix('p')) {
        ("x", _) => Sharing::Exclusive,
        ("s", _) => Sharing::Shared,
        (_, Some(most)) => Sharing::Permits(most.parse().ok()?),
        _ => return None,
    };
    let token = OwnerToken::parse(token)?;
    let sequence = u64::try_from(kv.create_revision).ok()?;
    Some(Entry { sequence, token, sharing, several, id: id.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kv(key: &str, create_revision: i64) -> KeyValue {
        KeyValue { key: key.into(), create_revision, ..KeyValue::default() }
    }

    #[test]
    fn an_entry_is_read_as_it_was_named() {
        let key = LockKey::new("lock:", "a/b%2F-ü\0").unwrap();
        let queue = queue_prefix(&key);
        for (sharing, several) in [
            (Sharing::Exclusive, false),
            (Sharing::Exclusive, true),
            (Sharing::Shared, false),
            (Sharing::Permits(12), true),
        ] {
            let token = OwnerToken::random(7);
            let id = [&queue, entry_name(token, sharing, several, 0x7b).as_str()].concat();
            let read = entries(&queue, vec![kv(&id, 3)]);
            assert_eq!(read, [Entry { sequence: 3, token, sharing, several, id: id.into() }]);
        }
    }

    #[test]
    fn no_line_lies_within_another() {
        let names = ["a", "a/", "a%2F", "a/b", "a0", "a%", "%"];
        let queues = names.map(|name| queue_prefix(&LockKey::new("", name).unwrap()));
        for (at, one) in queues.iter().enumerate() {
            for other in queues.iter().skip(at + 1) {
                for (queue, key) in [(one, other), (other, one)] {
                    let within = key.as_bytes() >= queue.as_bytes()
                        && *key.as_bytes() < *range_end_of(queue);
                    assert!(!within, "{key} is in the queue {queue}");
                }
            }
        }
    }

    /// Red without: the comparison with `queue_prefix`, or `left_out`.
    #[test]
    fn a_name_that_no_key_can_have_is_counted_once_and_no_queue() {
        let entry = entry_name(OwnerToken::random(7), Sharing::Shared, false, 1);
        let names = ["l:a", "l:%61", "l:%FF", "l:", "k:%FF"].map(str::as_bytes);
        let names = names.into_iter().chain([&b"l:\xff\xfe"[..]]);
        let mut found = vec![kv("l:plain", 1), kv("l:%FF/x", 2), kv("l:b/other program's", 3)];
        for name in names {
            let key = [name, b"/", entry.as_bytes()].concat();
            found.push(KeyValue { key, create_revision: 4, ..KeyValue::default() });
        }
        let LockQueues { queues, left_out } = queues("l:", found);
        assert_eq!(queues.iter().map(|queue| queue.key.as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(left_out, 3);
    }

    #[test]
    fn a_line_is_in_the_order_of_making_and_passes_over_what_is_not_ours() {
        let token = OwnerToken::random(7);
        let ours = ["x/", &entry_name(token, Sharing::Shared, false, 1)].concat();
        let found = vec![kv(&ours, 9), kv("x/something else", 5), kv("x/p-1-2", 6), kv(&ours, 4)];
        let sequences: Vec<u64> = entries("x/", found).iter().map(|entry| entry.sequence).collect();
        assert_eq!(sequences, [4, 9]);
    }
}
