//! For operators: lists the leases under a prefix, and takes a lock from its holder.

use mysql_async::Row;

use super::request;
use super::requests::DatabaseRequest;
use crate::HeldLocks;
use crate::store::{HeldLockRows, LockKey};

/// Queries the locks whose names begin with `prefix`, ordered by the end of their leases.
pub(super) fn held_locks(prefix: &str) -> DatabaseRequest {
    let statement = "SELECT held.name, held.value, \
                     held.ends - TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6)), \
                     held.seat <> '', main.waiting \
                     FROM lockattr_v2_locks AS held \
                     JOIN lockattr_v2_locks AS main ON main.id = held.id AND main.seat = '' \
                     WHERE held.token <> '' AND LEFT(held.name, LENGTH(?)) = ? AND \
                     held.ends > TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6)) \
                     ORDER BY held.ends";
    let prefix = prefix.as_bytes();
    DatabaseRequest::read(statement, (prefix, prefix))
}

/// Reads the answer to [`held_locks`].
pub(super) fn held(rows: Vec<Row>, prefix: &str) -> Option<HeldLocks> {
    let mut read = HeldLockRows::of(prefix);
    for row in rows {
        let (name, value, left, shared, waiting): (Vec<u8>, Vec<u8>, i64, i64, i64) =
            mysql_async::from_row_opt(row).ok()?;
        read.add(&name, &value, left, shared != 0, waiting);
    }
    Some(read.held())
}

/// `force_release.sql`.
pub(super) fn force_release(key: &LockKey) -> DatabaseRequest {
    DatabaseRequest::Query {
        statement: "CALL lockattr_v2_force_release(?)",
        params: (key.name().as_bytes(),).into(),
        is_write: true,
    }
}

/// Reads the answer of `force_release.sql`.
pub(super) fn force_released(rows: Vec<Row>) -> Option<bool> {
    request::held(rows)?.first().copied()
}
