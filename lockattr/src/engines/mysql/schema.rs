//! The tables and procedures in the database, and their installation.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

use super::reply::query_first;

/// Separates the statements of a file.
const SEPARATOR: &str = ";;";

const TABLES: &str = include_str!("tables.sql");

/// In the order of their creation. The last one exists only if all others do.
const PROCEDURES: [&str; 18] = [
    include_str!("count.sql"),
    include_str!("expire.sql"),
    include_str!("notify.sql"),
    include_str!("wake.sql"),
    include_str!("wake_earlier.sql"),
    include_str!("hand_off.sql"),
    include_str!("acquire.sql"),
    include_str!("acquire_one.sql"),
    include_str!("acquire_several.sql"),
    include_str!("release.sql"),
    include_str!("release_each.sql"),
    include_str!("release_several.sql"),
    include_str!("renew.sql"),
    include_str!("sleep.sql"),
    include_str!("sweep.sql"),
    include_str!("session_numbers.sql"),
    include_str!("mark_done.sql"),
    include_str!("installed.sql"),
];

/// A script for the `mysql` client.
pub(super) const MIGRATION: &str = concat!(
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES';\nDELIMITER ;;\n",
    include_str!("tables.sql"),
    ";;\n",
    include_str!("count.sql"),
    ";;\n",
    include_str!("expire.sql"),
    ";;\n",
    include_str!("notify.sql"),
    ";;\n",
    include_str!("wake.sql"),
    ";;\n",
    include_str!("wake_earlier.sql"),
    ";;\n",
    include_str!("hand_off.sql"),
    ";;\n",
    include_str!("acquire.sql"),
    ";;\n",
    include_str!("acquire_one.sql"),
    ";;\n",
    include_str!("acquire_several.sql"),
    ";;\n",
    include_str!("release.sql"),
    ";;\n",
    include_str!("release_each.sql"),
    ";;\n",
    include_str!("release_several.sql"),
    ";;\n",
    include_str!("renew.sql"),
    ";;\n",
    include_str!("sleep.sql"),
    ";;\n",
    include_str!("sweep.sql"),
    ";;\n",
    include_str!("session_numbers.sql"),
    ";;\n",
    include_str!("mark_done.sql"),
    ";;\n",
    include_str!("installed.sql"),
    ";;\nDELIMITER ;\n",
);

const NO_SUCH_PROCEDURE: u16 = 1305;

/// The name of the lock under which a database's tables are created. It uses SHA-2, as all digests
/// here: MySQL 9.7 has no `MD5`. Lock names on the server have at most 64 characters.
const MIGRATION_LOCK: &str = "CONCAT('lockattr:schema:', LEFT(SHA2(DATABASE(), 256), 16))";

pub(super) async fn is_installed(connection: &mut Conn) -> Result<bool, Error> {
    match connection.query_drop("CALL lockattr_v2_start_3()").await {
        Err(Error::Server(error)) if error.code == NO_SUCH_PROCEDURE => Ok(false),
        outcome => outcome.map(|()| true),
    }
}

/// Creates what is missing. Several processes may do so at once; the lock only makes that quicker.
/// An older version, which uses a lock of another name, may run at the same time.
pub(super) async fn install(connection: &mut Conn) -> Result<(), Error> {
    let lock = format!("SELECT GET_LOCK({MIGRATION_LOCK}, 10)");
    let _held: Option<Option<i64>> = query_first(connection, &lock).await?;
    // Another process may have created everything while this one waited.
    if is_installed(connection).await? {
        return connection.query_drop(format!("DO RELEASE_LOCK({MIGRATION_LOCK})")).await;
    }
    for table in TABLES.split(SEPARATOR) {
        connection.query_drop(table).await?;
    }
    for procedure in PROCEDURES {
        connection.query_drop(procedure).await?;
    }
    connection.query_drop(format!("DO RELEASE_LOCK({MIGRATION_LOCK})")).await?;
    // Raises the sequence, as each new connection does.
    is_installed(connection).await.map(drop)
}
