//! The names of nodes: a lock's, and those of the entries in its queue. Pure.
//!
//! `CHROOT/lock:product%2F42/x-TOKEN-SESSION-0000000007`

use std::fmt::Write;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::engines::sequenced::Entry;
use crate::store::{ListedName, LockKey, OwnerToken, Sharing};

/// The characters that are not escaped: no `/`, which would split a name, and none that servers
/// refuse.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b':').remove(b'~').remove(b'@').remove(b'.');

/// The first letter of an entry's name if its claim has entries in other queues too.
const SEVERAL: char = 'm';

/// Returns the path of a lock's queue. No two locks have the same.
pub(super) fn queue(chroot: &str, key: &LockKey) -> String {
    let mut path = String::with_capacity(chroot.len() + 1 + key.name().len());
    path.push_str(chroot);
    path.push('/');
    let start = path.len();
    path.extend(utf8_percent_encode(key.name(), PLAIN));
    // A name of dots would be a relative path, and the server reserves `zookeeper`.
    if path[start..].starts_with('.') {
        path.replace_range(start..=start, "%2E");
    } else if &path[start..] == "zookeeper" {
        path.replace_range(start..=start, "%7A");
    }
    path
}

/// Returns the key of the lock whose queue is the node of this name, if that is under `prefix`.
pub(super) fn listed(chroot: &str, node: &str, prefix: &str) -> ListedName {
    let name: Vec<u8> = percent_decode_str(node).collect();
    match ListedName::read(prefix, &name) {
        // Another program may encode the same name in another way.
        ListedName::Key(key) if !is_queue(chroot, node, &key) => ListedName::Elsewhere,
        name => name,
    }
}

fn is_queue(chroot: &str, node: &str, key: &LockKey) -> bool {
    let path = queue(chroot, key);
    path.strip_prefix(chroot).and_then(|path| path.strip_prefix('/')) == Some(node)
}

/// Returns an entry's name, up to its sequence number.
pub(super) fn entry(several: bool, sharing: Sharing, token: OwnerToken, session: u64) -> String {
    let mut name = String::with_capacity(64);
    if several {
        name.push(SEVERAL);
    }
    // Writing to a string cannot fail.
    let _never = match sharing {
        Sharing::Exclusive => name.write_str("x"),
        Sharing::Shared => name.write_str("s"),
        Sharing::Permits(permits) => write!(name, "p{permits}"),
    };
    let _never = write!(name, "-{token}-{session:016x}-");
    name
}

/// Returns the session that made an entry.
pub(super) fn session(entry: &Entry) -> Option<u64> {
    u64::from_str_radix(entry.id.split('-').nth(2)?, 16).ok()
}

/// Returns the entries of a queue, head first. Skips nodes that another program made.
pub(super) fn entries(children: Vec<String>) -> Vec<Entry> {
    let mut entries: Vec<_> = children.into_iter().filter_map(read).collect();
    // The servers count in 32 bits, and continue at the lowest negative number after the last. So
    // entries are ordered by their distance from one of them, which is never half of all numbers.
    if let Some(one) = entries.first().map(|entry| entry.sequence as u32) {
        entries
            .sort_unstable_by_key(|entry| (entry.sequence as u32).wrapping_sub(one).cast_signed());
    }
    entries
}

fn read(id: String) -> Option<Entry> {
    let mut words = id.splitn(4, '-');
    let (mode, token, _session) = (words.next()?, words.next()?, words.next()?);
    let sequence: i32 = words.next()?.parse().ok()?;
    let token = OwnerToken::parse(token)?;
    let (mode, several) = mode.strip_prefix(SEVERAL).map_or((mode, false), |mode| (mode, true));
    let sharing = match mode.split_at_checked(1)? {
        ("x", "") => Sharing::Exclusive,
        ("s", "") => Sharing::Shared,
        ("p", permits) => Sharing::Permits(permits.parse().ok()?),
        _ => return None,
    };
    let sequence = u64::from(sequence.cast_unsigned());
    Some(Entry { sequence, token, sharing, several, id: id.into() })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn any_key_is_one_legal_name_and_is_read_back() {
        let long = "ä/".repeat(340);
        let keys =
            ["a", "a/b", "a\0", "a\n", ".", "..", "...", "zookeeper", "%2E", "💰", " ", "%", &long];
        let mut seen = HashSet::new();
        for key in keys {
            let path = queue("/c", &LockKey::new("", key).unwrap());
            let name = path.strip_prefix("/c/").unwrap();
            assert!(name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'), "{name}");
            assert!(!["zookeeper", ".", ".."].contains(&name));
            assert_eq!(percent_decode_str(name).decode_utf8().unwrap(), key);
            assert_eq!(listed("/c", name, ""), ListedName::Key(LockKey::new("", key).unwrap()));
            assert_eq!(listed("/c", name, "other:"), ListedName::Elsewhere);
            assert!(seen.insert(path));
        }
    }

    /// Red without: `is_queue`.
    #[test]
    fn a_node_of_another_program_is_no_lock_and_is_left_out_if_no_key_can_have_its_name() {
        for (node, expected) in [
            ("a%FF", ListedName::LeftOut),
            ("a", ListedName::LeftOut),
            ("a%62", ListedName::Elsewhere),
            ("b%FF", ListedName::Elsewhere),
        ] {
            assert_eq!(listed("/c", node, "a"), expected, "{node}");
        }
    }

    fn named(sequence: i32, sharing: Sharing, several: bool) -> String {
        format!("{}{sequence:010}", entry(several, sharing, OwnerToken::random(7), u64::MAX))
    }

    #[test]
    fn an_entry_is_read_from_its_name() {
        for several in [false, true] {
            for sharing in [Sharing::Exclusive, Sharing::Shared, Sharing::Permits(12)] {
                let [read] = &entries(vec![named(3, sharing, several)])[..] else { panic!() };
                assert_eq!((read.sharing, read.several, read.sequence), (sharing, several, 3));
                assert_eq!((read.token.subscriber(), session(read)), (7, Some(u64::MAX)));
            }
        }
        let not_ours = ["", "x", "lock-0000000001", "q-1-2-3"].map(str::to_owned).to_vec();
        assert!(entries(not_ours).is_empty());
    }

    #[test]
    fn the_order_goes_on_where_the_servers_count_begins_anew() {
        let sequences = [i32::MIN + 1, i32::MAX, i32::MIN, i32::MAX - 1];
        let queue = entries(sequences.map(|it| named(it, Sharing::Exclusive, false)).to_vec());
        let order: Vec<_> =
            queue.iter().map(|entry| (entry.sequence as u32).cast_signed()).collect();
        assert_eq!(order, [i32::MAX - 1, i32::MAX, i32::MIN, i32::MIN + 1]);
    }
}
