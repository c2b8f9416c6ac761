//! What holds of any line, for [`fuzzing`](crate::engines::fuzzing).

use super::ensemble::Entry;
use super::{turns, value};
use crate::store::Sharing;

/// Nobody has his turn beside an exclusive one, and who has not waits for somebody before him.
pub(in crate::engines) fn makes_sense(line: &[Entry]) {
    let served = turns::served(line);
    assert!(served <= line.len() && (line.is_empty() || served > 0));
    let alone = line[..served].iter().filter(|entry| entry.sharing == Sharing::Exclusive).count();
    assert!(alone == 0 || served == 1, "somebody shares with an exclusive one");
    for nth in served..line.len() {
        let in_the_way = turns::in_the_way(line, nth);
        assert!(!in_the_way.is_empty(), "it waits for nobody, and has not its turn");
        let before = |entry: &Entry| line[..nth].iter().any(|other| other == entry);
        assert!(in_the_way.iter().all(before), "it waits for one behind it");
    }
}

/// What an entry says is read, whatever it is.
pub(in crate::engines) fn is_read(text: &str) {
    let _holder = value::holder(text);
    let keys = value::keys(text);
    assert!(keys.iter().all(|key| !key.name().is_empty()), "a key without a name");
}
