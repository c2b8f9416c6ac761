//! Builds the parameters of the procedures, and reads their answers.

use std::time::Duration;

use mysql_async::{Params, Row, Value};

use super::execute::Sql;
use super::requests::DatabaseRequest;
use crate::store::held_flags::held_each;
use crate::store::held_lock_rows::from_micros;
use crate::store::queue::recheck_after;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, MAX_RECHECK, ReleaseRequest, RenewRequest,
    Sharing, Waiting, holder_of,
};
use crate::{FencingToken, Holder};

/// `acquire.sql` for a claim, whose notifications go to `listener`.
pub(super) fn acquire(request: &AcquireRequest, listener: &str) -> Sql {
    let AcquireRequest { claim, ttl, waiting, .. } = request;
    let (mode, permits) = match claim.sharing() {
        Sharing::Exclusive => ("x", 0),
        Sharing::Shared => ("s", 0),
        Sharing::Permits(permits) => ("p", permits),
    };
    let values: [Value; 9] = [
        claim.keys().len().into(),
        names(claim).into(),
        claim.token().to_string().into(),
        claim.value().into(),
        micros(*ttl).into(),
        mode.into(),
        permits.into(),
        listener.into(),
        (*waiting != Waiting::Not).into(),
    ];
    let call = "CALL lockattr_v2_acquire(?, ?, ?, ?, ?, ?, ?, ?, ?)";
    (call.into(), Params::Positional(values.into()))
}

/// `renew.sql` for a batch.
pub(super) fn renew<'a>(renewals: impl Iterator<Item = &'a RenewRequest>) -> Sql {
    let mut items = Vec::new();
    renewals.for_each(|RenewRequest { claim, ttl, .. }| add(&mut items, claim, micros(*ttl)));
    ("CALL lockattr_v2_renew(?)".into(), (items,).into())
}

/// `release.sql` for a single claim, else `release_each.sql`.
pub(super) fn release<'a>(releases: impl Iterator<Item = &'a ReleaseRequest>) -> Sql {
    let releases: Vec<_> = releases.collect();
    if let [ReleaseRequest { claim, after, .. }] = releases[..] {
        let (count, token) = (claim.keys().len(), claim.token().to_string());
        let call = "CALL lockattr_v2_release(?, ?, ?, ?, ?)";
        // The last one is what the procedure returns.
        let values = (count, names(claim), token, release_micros(*after), Value::NULL);
        return (call.into(), values.into());
    }
    let mut items = Vec::new();
    releases.iter().for_each(|ReleaseRequest { claim, after, .. }| {
        add(&mut items, claim, release_micros(*after));
    });
    ("CALL lockattr_v2_release_each(?)".into(), (items,).into())
}

fn release_micros(after: Duration) -> u64 {
    if after.is_zero() { 0 } else { micros(after) }
}

/// The holder of a lock; of several, the one whose lease ends first.
pub(super) fn holder(key: &LockKey) -> DatabaseRequest {
    let statement = "SELECT value, ends - TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6)) \
                     FROM lockattr_v2_locks WHERE id = UNHEX(SHA2(?, 256)) AND token <> '' AND \
                     ends > TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6)) \
                     ORDER BY ends LIMIT 1";
    DatabaseRequest::read(statement, (key.name().as_bytes(),))
}

pub(super) fn ping() -> DatabaseRequest {
    DatabaseRequest::read("DO 0", ())
}

/// The names of a claim's locks: a single one as it is, several each with its length before it.
fn names(claim: &Claim) -> Vec<u8> {
    match claim.keys() {
        [key] => key.name().into(),
        keys => {
            let each = keys.iter().map(|key| format!("{:08}{}", key.name().len(), key.name()));
            each.collect::<String>().into()
        }
    }
}

fn add(items: &mut Vec<u8>, claim: &Claim, value: u64) {
    let token = claim.token().to_string();
    items.extend(item(claim.keys().len(), &names(claim), token.as_bytes(), value));
}

/// One claim, as the procedures for several claims read it.
pub(super) fn item(keys: usize, names: &[u8], token: &[u8], value: u64) -> Vec<u8> {
    let (head, tail) = (format!("{keys:04}{:08}", names.len()), format!("{value:020}"));
    [head.as_bytes(), names, token, tail.as_bytes()].concat()
}

/// Reads the answer of `acquire.sql` for a claim with this TTL, and the server's clock in it.
pub(super) fn granted(
    rows: Vec<Row>,
    queued: Option<Duration>,
) -> Option<(AcquireOutcome, Option<u64>)> {
    let row = rows.into_iter().next()?;
    read_acquire(mysql_async::from_row_opt(row).ok()?, queued)
}

pub(super) fn read_acquire(
    columns: AcquireRow,
    queued: Option<Duration>,
) -> Option<(AcquireOutcome, Option<u64>)> {
    let (counter, contended, value, left, clock, others_first) = columns;
    if let Some(counter) = counter {
        let fencing = FencingToken::read(counter)?;
        return Some((
            AcquireOutcome::Acquired { fencing, contended: contended == Some(1) },
            clock,
        ));
    }
    let holder = value.map(|value| Box::new(holder_of(&value, left)));
    // A millisecond later the lease is certainly over.
    let left = left.map(|left| from_micros(left) + Duration::from_millis(1));
    let ahead = u32::from(others_first == Some(1));
    let queued = queued.map(|ttl| recheck_after(ttl, ahead, left, MAX_RECHECK));
    Some((AcquireOutcome::Held { holder, queued }, clock))
}

pub(super) type AcquireRow =
    (Option<u64>, Option<i64>, Option<Vec<u8>>, Option<i64>, Option<u64>, Option<i64>);

/// Reads the answer to [`holder`].
pub(super) fn held_by(row: Row) -> Option<Holder> {
    let (value, left): (Vec<u8>, i64) = mysql_async::from_row_opt(row).ok()?;
    Some(holder_of(&value, Some(left)))
}

/// Reads whether a claim held its locks, from `release.sql`.
pub(super) fn held_one(rows: Vec<Row>) -> Option<bool> {
    let (held,): (i64,) = mysql_async::from_row_opt(rows.into_iter().next()?).ok()?;
    Some(held != 0)
}

/// Reads whether each claim of a batch held its locks.
pub(super) fn held(rows: Vec<Row>) -> Option<Vec<bool>> {
    let flags: Vec<u8> = mysql_async::from_row_opt::<(Vec<u8>,)>(rows.into_iter().next()?).ok()?.0;
    held_each(&flags)
}

/// Longer than any lease, and small enough to be added to a clock.
const MAX_MICROS: u64 = 1 << 60;

pub(super) fn micros(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_micros()).unwrap_or(MAX_MICROS).clamp(1, MAX_MICROS)
}
