//! For operators: all leases that run under a prefix, and taking a lock from its holder.

use mysql_async::Row;

use super::lane::{Ask, Needed};
use super::request;
use crate::HeldLock;
use crate::store::{LockKey, Rows};

/// What is held under names that begin with `prefix`; of several who share a lock, first the one whose
/// lease ends first.
pub(super) fn held_locks(prefix: &str) -> Ask {
    let statement = "SELECT held.name, held.value, \
                     held.ends - TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6)), \
                     held.seat <> '', main.waiting \
                     FROM lockattr_locks AS held \
                     JOIN lockattr_locks AS main ON main.id = held.id AND main.seat = '' \
                     WHERE held.token <> '' AND LEFT(held.name, LENGTH(?)) = ? AND \
                     held.ends - TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6)) > 0 \
                     ORDER BY held.ends + 0";
    let prefix = prefix.as_bytes();
    Ask { statement, params: (prefix, prefix).into(), needed: Needed::ByCaller }
}

/// Reads the answer to [`survey`].
pub(super) fn held(rows: Vec<Row>, prefix: &str) -> Option<Vec<HeldLock>> {
    let mut read = Rows::of(prefix);
    for row in rows {
        let (name, value, left, shared, waiting): (Vec<u8>, Vec<u8>, i64, i64, i64) =
            mysql_async::from_row_opt(row).ok()?;
        read.add(&name, &value, left, shared != 0, waiting);
    }
    Some(read.held())
}

/// `evict.sql`.
pub(super) fn force_release(key: &LockKey) -> Ask {
    let (statement, needed) = ("CALL lockattr_v1_evict(?)", Needed::Once);
    Ask { statement, params: (key.name().as_bytes(),).into(), needed }
}

/// Reads the answer of `evict.sql`.
pub(super) fn evicted(rows: Vec<Row>) -> Option<bool> {
    request::held(rows)?.first().copied()
}
