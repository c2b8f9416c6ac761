//! The statements of a session.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::numbers::Drawn;
use crate::engines::mysql::reply::exec_first;

/// Takes a lock within so many seconds. Returns `NULL`, or what its fencing number is made from.
///
/// It names no table: while it waits, it must keep none open, and no old version of any row.
const TAKE: &str =
    "SELECT IF(GET_LOCK(?, ?) = 1, UUID_SHORT(), NULL), CAST(@@GLOBAL.read_only AS CHAR)";

/// The same for a lock that the session holds.
const DRAW: &str = "SELECT UUID_SHORT(), CAST(@@GLOBAL.read_only AS CHAR)";

/// The server reads its variables before a statement waits. After a longer wait they are read again.
const SHORT_WAIT: Duration = Duration::from_secs(1);

const RELEASE: &str = "SELECT RELEASE_LOCK(?)";

const IS_OURS: &str = "SELECT IS_USED_LOCK(?) = CONNECTION_ID()";

/// Queries which connection holds a lock, by the name of its key. The same name as in
/// [`name_on_server`].
pub(super) const HOLDER: &str = "SELECT IS_USED_LOCK(CONCAT('lockattr:lock:', \
                                 LEFT(SHA2(CONCAT(DATABASE(), '/', CAST(? AS BINARY)), 256), 50)))";

/// Practically without limit: the waiter gives up earlier.
const WAIT_SECONDS: u32 = 31_536_000;

/// The lock's name on the server, which has at most 64 characters. It depends on the database, so
/// databases share no locks.
pub(super) fn name_on_server(database: &[u8], name: &str) -> String {
    let digest =
        Sha256::new().chain_update(database).chain_update("/").chain_update(name).finalize();
    let digits = digest.iter().take(25).flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
    "lockattr:lock:".chars().chain(digits).collect()
}

/// Takes a lock if it is free. Returns what its number is made from, or `None`.
pub(super) async fn try_lock(connection: &mut Conn, name: &str) -> Result<Option<Drawn>, Error> {
    take(connection, name, 0).await
}

/// Waits in the server's queue until the lock is granted.
pub(super) async fn wait_for_lock(
    connection: &mut Conn,
    name: &str,
) -> Result<Option<Drawn>, Error> {
    let since = Instant::now();
    let drawn = take(connection, name, WAIT_SECONDS).await?;
    if drawn.is_none() || since.elapsed() < SHORT_WAIT {
        return Ok(drawn);
    }
    exec_first(connection, DRAW, ()).await?.ok_or_else(no_row).map(Some)
}

async fn take(connection: &mut Conn, name: &str, seconds: u32) -> Result<Option<Drawn>, Error> {
    let row = exec_first(connection, TAKE, (name, seconds)).await?;
    let (drawn, read_only): (Option<u64>, String) = row.ok_or_else(no_row)?;
    Ok(drawn.map(|drawn| (drawn, read_only)))
}

fn no_row() -> Error {
    Error::Other("the statement returned no row".into())
}

/// Releases a lock, and returns whether the session held it.
pub(super) async fn release(connection: &mut Conn, name: &str) -> Result<bool, Error> {
    let released: Option<Option<i64>> = exec_first(connection, RELEASE, (name,)).await?;
    Ok(released.flatten() == Some(1))
}

/// Whether the session holds the lock.
pub(super) async fn is_ours(connection: &mut Conn, name: &str) -> Result<bool, Error> {
    let ours: Option<Option<i64>> = exec_first(connection, IS_OURS, (name,)).await?;
    Ok(ours.flatten() == Some(1))
}

/// The server ends the session when it has sent nothing for so many seconds.
pub(super) async fn let_idle(connection: &mut Conn, seconds: u64) -> Result<(), Error> {
    connection.query_drop(format!("SET SESSION wait_timeout = {seconds}")).await
}
