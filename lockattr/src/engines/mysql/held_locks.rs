//! For operators: lists the leases under a prefix, and takes a lock from a holder.

use mysql_async::Row;

use super::request;
use super::requests::DatabaseRequest;
use crate::store::{HeldLockRows, LockKey};
use crate::{HeldLocks, HolderId};

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

/// Queries the tokens and values of all that hold this lock.
pub(super) fn holders(key: &LockKey) -> DatabaseRequest {
    let statement =
        "SELECT token, value FROM lockattr_v2_locks WHERE id = UNHEX(SHA2(?, 256)) AND token <> ''";
    DatabaseRequest::read(statement, (key.name().as_bytes(),))
}

/// Reads the answer to [`holders`]: the token of the one with this id, if any of them has it.
pub(super) fn token_of(rows: Vec<Row>, holder: HolderId) -> Option<Option<Vec<u8>>> {
    for row in rows {
        let (token, value): (Vec<u8>, Vec<u8>) = mysql_async::from_row_opt(row).ok()?;
        if HolderId::of(value) == holder {
            return Some(Some(token));
        }
    }
    Some(None)
}

/// Releases the lock in place of the holder with this token.
pub(super) fn force_release(key: &LockKey, token: &[u8]) -> DatabaseRequest {
    DatabaseRequest::Query {
        statement: "CALL lockattr_v2_release_each(?)",
        params: (request::item(1, key.name().as_bytes(), token, 0),).into(),
        is_write: true,
    }
}
