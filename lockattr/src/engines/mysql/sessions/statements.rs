//! The statements of a session.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

use crate::FencingToken;

/// The lock's name on the server depends on the database, so databases share no locks.
macro_rules! name {
    () => {
        "CONCAT('lockattr:lock:', LEFT(SHA2(CONCAT(DATABASE(), '/', CAST(? AS BINARY)), 256), 50))"
    };
}

/// The server's clock, as in `count.sql`.
macro_rules! clock {
    () => {
        "TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6))"
    };
}

/// Tries to take a lock. Inserts or updates the row of its fencing number only if it was acquired.
const TRY_MYSQL: &str = concat!(
    "INSERT INTO lockattr_v2_numbers (slot, last) \
     SELECT ORD(UNHEX(SHA2(?, 256))), LAST_INSERT_ID(",
    clock!(),
    ") FROM DUAL WHERE GET_LOCK(",
    name!(),
    ", 0) = 1 ON DUPLICATE KEY UPDATE last = LAST_INSERT_ID(GREATEST(last + 1, ",
    clock!(),
    "))"
);

/// Tries to take a lock. Returns its fencing number, or `NULL`.
const TRY_MARIADB: &str =
    concat!("SELECT IF(GET_LOCK(", name!(), ", 0) = 1, NEXT VALUE FOR lockattr_v2_numbers, NULL)");

/// The same, for at most so many seconds. While it waits, it must keep no table open: a statement
/// that names the sequence would.
const WAIT: &str = "CALL lockattr_v2_session(?, ?)";

const RELEASE: &str = concat!("SELECT RELEASE_LOCK(", name!(), ")");

const IS_OURS: &str = concat!("SELECT IS_USED_LOCK(", name!(), ") = CONNECTION_ID()");

/// Queries which connection holds a lock.
pub(super) const HOLDER: &str = concat!("SELECT IS_USED_LOCK(", name!(), ")");

/// Practically without limit: the waiter gives up earlier.
const WAIT_SECONDS: u32 = 31_536_000;

/// Takes a lock if it is free. The number of the acquisition, or `None`.
pub(super) async fn try_lock(
    connection: &mut Conn,
    is_mariadb: bool,
    name: &str,
) -> Result<Option<FencingToken>, Error> {
    if is_mariadb {
        return number_of(connection.exec_first(TRY_MARIADB, (name.as_bytes(),)).await?);
    }
    connection.exec_drop(TRY_MYSQL, (name.as_bytes(), name.as_bytes())).await?;
    // A statement that changes no row sets no number.
    let number = connection.last_insert_id().filter(|_| connection.affected_rows() > 0);
    Ok(number.map(FencingToken::from_counter))
}

/// Waits in the server's queue until the lock is granted.
pub(super) async fn wait_for_lock(
    connection: &mut Conn,
    name: &str,
) -> Result<Option<FencingToken>, Error> {
    number_of(connection.exec_first(WAIT, (name.as_bytes(), WAIT_SECONDS)).await?)
}

fn number_of(row: Option<Option<u64>>) -> Result<Option<FencingToken>, Error> {
    let number = row.ok_or_else(|| Error::Other("the statement returned no row".into()))?;
    Ok(number.map(FencingToken::from_counter))
}

/// Releases a lock, and returns whether the session held it.
pub(super) async fn release(connection: &mut Conn, name: &str) -> Result<bool, Error> {
    let released: Option<Option<i64>> = connection.exec_first(RELEASE, (name.as_bytes(),)).await?;
    Ok(released.flatten() == Some(1))
}

/// Whether the session holds the lock.
pub(super) async fn is_ours(connection: &mut Conn, name: &str) -> Result<bool, Error> {
    let ours: Option<Option<i64>> = connection.exec_first(IS_OURS, (name.as_bytes(),)).await?;
    Ok(ours.flatten() == Some(1))
}

/// The server ends the session when it has sent nothing for so many seconds.
pub(super) async fn let_idle(connection: &mut Conn, seconds: u64) -> Result<(), Error> {
    connection.query_drop(format!("SET SESSION wait_timeout = {seconds}")).await
}
