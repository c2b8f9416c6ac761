//! Properties of any queue, for [`fuzzing`](crate::engines::fuzzing).

use super::recipe::Entry;
use super::{queue_order, value};
use crate::store::Sharing;

/// An exclusive entry has its turn alone, and an entry without its turn waits for one before it.
/// it.
pub(in crate::engines) fn check_queue(queue: &[Entry]) {
    let served = queue_order::served(queue);
    assert!(served <= queue.len() && (queue.is_empty() || served > 0));
    let alone = queue[..served].iter().filter(|entry| entry.sharing == Sharing::Exclusive).count();
    assert!(alone == 0 || served == 1, "a lock is shared with an exclusive claim");
    for nth in served..queue.len() {
        let blockers = queue_order::blockers(queue, nth);
        assert!(!blockers.is_empty(), "a waiter without its turn has no blocker");
        let before = |entry: &Entry| queue[..nth].iter().any(|other| other == entry);
        assert!(blockers.iter().all(before), "a waiter is blocked by a later entry");
    }
}

/// Any text of an entry can be read.
pub(in crate::engines) fn check_value(text: &str) {
    let _holder = value::holder(text);
    let keys = value::keys(text);
    assert!(keys.iter().all(|key| !key.name().is_empty()), "a key without a name");
}
