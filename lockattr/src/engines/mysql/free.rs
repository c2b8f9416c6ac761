//! The statements of a free exclusive lock: it is acquired by inserting its row, and released by
//! deleting it, if no claim waits by then.
//!
//! MariaDB returns what a statement has written, and numbers it from a sequence: the number is drawn
//! once the row is inserted, so it is greater than that of the holder before. MySQL can do neither,
//! and calls procedures instead.

use std::fmt::Write;
use std::sync::Arc;

use mysql_async::{Params, Row, Value};
use sha2::{Digest, Sha256};

use super::execute::Sql;
use super::request::micros;
use crate::FencingToken;
use crate::store::{AcquireRequest, Claim, LockKey, OwnerToken, ReleaseRequest, Sharing};

const CLOCK: &str = "TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6))";

const INSERT: &str = "INTO lockattr_v2_locks \
                      (id, seat, name, mode, token, value, listener, ends, waiting, holders) VALUES ";

/// The id of a lock's row. The server would compute it for each row that a statement looks at.
fn id(key: &LockKey) -> Vec<u8> {
    Sha256::digest(key.name()).to_vec()
}

fn hex(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        // Writing to a string does not fail.
        let _written = write!(digits, "{byte:02x}");
        digits
    })
}

/// Whether these statements are enough for this claim: one exclusive lock, and no place in a queue.
pub(super) fn acquires_free(request: &AcquireRequest) -> bool {
    let claim = &request.claim;
    let alone = claim.sharing() == Sharing::Exclusive && claim.keys().len() == 1;
    alone && claim.queued().is_none()
}

/// The same for a release: of one exclusive lock, at once.
pub(super) fn releases_free(release: &ReleaseRequest) -> bool {
    let claim = &release.claim;
    let alone = claim.sharing() == Sharing::Exclusive && claim.keys().len() == 1;
    alone && claim.queued().is_none() && release.after.is_zero()
}

/// Acquires each of these locks that is free. Notifications for their holders go to `listener`.
pub(super) fn acquire(requests: &[&AcquireRequest], listener: &str, is_mariadb: bool) -> Sql {
    if !is_mariadb {
        return acquire_by_procedure(requests, listener);
    }
    let row = format!("(?, '', ?, 'x', ?, ?, ?, {CLOCK} + ?, 0, 1)");
    let mut values: Vec<Value> = Vec::with_capacity(6 * requests.len());
    for AcquireRequest { claim, ttl, .. } in requests {
        let (id, name) = (id(claim.key()), claim.key().name());
        values.extend([id.into(), name.into(), claim.token().to_string().into()]);
        values.extend([claim.value().into(), listener.into(), micros(*ttl).into()]);
    }
    let rows = vec![row; requests.len()].join(", ");
    let returned = "RETURNING token, NEXT VALUE FOR lockattr_v2_numbers";
    (format!("INSERT IGNORE {INSERT}{rows} {returned}").into(), Params::Positional(values))
}

fn acquire_by_procedure(requests: &[&AcquireRequest], listener: &str) -> Sql {
    if let [AcquireRequest { claim, ttl, .. }] = requests {
        let (name, token) = (claim.key().name(), claim.token().to_string());
        let values: [Value; 5] =
            [name.into(), token.into(), claim.value().into(), listener.into(), micros(*ttl).into()];
        let call = "CALL lockattr_v2_acquire_one(?, ?, ?, ?, ?)";
        return (call.into(), Params::Positional(values.into()));
    }
    let item = |AcquireRequest { claim, ttl, .. }: &&AcquireRequest| {
        let (id, name, value) = (id(claim.key()), claim.key().name(), claim.value());
        let (id, name, token, value) = (hex(id), hex(name), claim.token(), hex(value));
        format!(r#"["{id}","{name}","{token}","{value}",{}]"#, micros(*ttl))
    };
    let items = requests.iter().map(item).collect::<Vec<_>>().join(",");
    let call = "CALL lockattr_v2_acquire_several(?, ?)";
    (call.into(), (format!("[{items}]"), listener).into())
}

/// Reads the number of each claim that was granted its lock.
pub(super) fn acquired(
    rows: Vec<Row>,
    requests: &[&AcquireRequest],
    is_mariadb: bool,
) -> Option<Vec<Option<FencingToken>>> {
    let granted = match requests {
        [_] if !is_mariadb => {
            let (number,) = mysql_async::from_row_opt(rows.into_iter().next()?).ok()?;
            let number: Option<u64> = number;
            return Some(vec![match number {
                Some(number) => Some(FencingToken::read(number)?),
                None => None,
            }]);
        }
        _ if is_mariadb => rows.into_iter().map(granted_row).collect::<Option<Vec<_>>>()?,
        _ => {
            let granted = concatenated(rows)?;
            let each = granted.as_bytes().chunks(TOKEN_DIGITS + NUMBER_DIGITS);
            each.map(granted_text).collect::<Option<_>>()?
        }
    };
    let number = |request: &&AcquireRequest| {
        let mut all = granted.iter();
        all.find(|(token, _)| *token == request.claim.token()).map(|(_, number)| *number)
    };
    Some(requests.iter().map(number).collect())
}

const TOKEN_DIGITS: usize = 32;
const NUMBER_DIGITS: usize = 20;

fn granted_row(row: Row) -> Option<(OwnerToken, FencingToken)> {
    let (token, number): (Vec<u8>, u64) = mysql_async::from_row_opt(row).ok()?;
    Some((OwnerToken::parse(std::str::from_utf8(&token).ok()?)?, FencingToken::read(number)?))
}

fn granted_text(text: &[u8]) -> Option<(OwnerToken, FencingToken)> {
    let (token, number) = std::str::from_utf8(text).ok()?.split_at_checked(TOKEN_DIGITS)?;
    Some((OwnerToken::parse(token)?, FencingToken::read(number.parse().ok()?)?))
}

/// Reads the string that a procedure returns, which is empty instead of `NULL`.
fn concatenated(rows: Vec<Row>) -> Option<String> {
    let (text,) = mysql_async::from_row_opt(rows.into_iter().next()?).ok()?;
    let text: Option<Vec<u8>> = text;
    String::from_utf8(text.unwrap_or_default()).ok()
}

/// Releases a lock that no claim waits for. It affects one row then.
pub(super) fn release_one(release: &ReleaseRequest) -> Sql {
    let statement = format!(
        "DELETE FROM lockattr_v2_locks WHERE id = ? AND seat = '' AND \
         mode = 'x' AND token = ? AND waiting = 0 AND ends > {CLOCK}"
    );
    let claim = &release.claim;
    (statement.into(), (id(claim.key()), claim.token().to_string()).into())
}

/// Releases those of several locks that no claim waits for, and returns their owner tokens.
///
/// The row with a claim's token has the id of that claim's lock, because the claim has no other. So
/// MariaDB need not compare ids and tokens in pairs, which would take a time that grows with the
/// square of their number.
pub(super) fn release_several(releases: &[&ReleaseRequest], is_mariadb: bool) -> Sql {
    let claims = || releases.iter().map(|release| &release.claim);
    if !is_mariadb {
        let item =
            |claim: &Arc<Claim>| format!(r#"["{}","{}"]"#, hex(id(claim.key())), claim.token());
        let items = claims().map(item).collect::<Vec<_>>().join(",");
        return ("CALL lockattr_v2_release_several(?)".into(), (format!("[{items}]"),).into());
    }
    let each = vec!["?"; releases.len()].join(", ");
    let statement = format!(
        "DELETE FROM lockattr_v2_locks WHERE id IN ({each}) AND seat = '' AND token IN ({each}) AND \
         mode = 'x' AND waiting = 0 AND ends > {CLOCK} RETURNING token"
    );
    let tokens = claims().map(|claim| claim.token().to_string().into());
    let values = claims().map(|claim| id(claim.key()).into()).chain(tokens);
    (statement.into(), Params::Positional(values.collect()))
}

/// Reads whose locks were released.
pub(super) fn released(rows: Vec<Row>, is_mariadb: bool) -> Option<Vec<OwnerToken>> {
    if !is_mariadb {
        let released = concatenated(rows)?;
        let each = released.as_bytes().chunks(TOKEN_DIGITS);
        return each.map(|token| OwnerToken::parse(std::str::from_utf8(token).ok()?)).collect();
    }
    let token = |row| {
        let (token,): (Vec<u8>,) = mysql_async::from_row_opt(row).ok()?;
        OwnerToken::parse(std::str::from_utf8(&token).ok()?)
    };
    rows.into_iter().map(token).collect()
}
