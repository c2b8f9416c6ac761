//! Makes and abandons connections. A new one finds the procedures in the database, and nothing of
//! its predecessor still in progress.

use std::io;
use std::sync::LazyLock;
use std::time::Duration;

use futures_util::TryFutureExt;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, IoError};
use tokio::runtime::{Builder, Handle};
use tokio::time::timeout;

use super::config::Config;
use super::reply::exec_first;
use super::schema;
use crate::engines::dial::{handshake_limit, no_answer};
use crate::store::StoreError;

/// Limit for creating the tables and procedures, which happens once. Each may wait for the disk.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection, and the name of the lock that its session holds while it lives.
pub(super) struct Live {
    pub(super) connection: Conn,
    pub(super) is_mariadb: bool,
    name: String,
}

/// The name of an abandoned connection, for which the server may still be at work.
#[derive(Clone, PartialEq)]
pub(super) struct AbandonedSession(String);

impl Live {
    pub(super) async fn connect(config: &Config) -> Result<Self, StoreError> {
        let limit = handshake_limit(config.timing.connect_timeout);
        let failed = |error| error_from(&config.address, error);
        let mut connection = config.login.connect(config).await?;
        let checking = schema::is_installed(&mut connection).map_err(failed);
        if !within(config, limit, checking).await? {
            let installing = schema::install(&mut connection).map_err(failed);
            within(config, MIGRATION_TIMEOUT, installing).await?;
        }
        let setting_up = async {
            let name = format!("lockattr:connection:{:016x}", rand::random::<u64>());
            let own = probe(&mut connection, &name).await.map_err(failed)?;
            Ok((name, own))
        };
        let (name, own) = within(config, limit, setting_up).await?;
        let Some(is_mariadb) = own else {
            abandon(connection);
            return Err(shared_connection(config));
        };
        Ok(Self { connection, is_mariadb, name })
    }

    /// Ends an abandoned session, so that none of its requests runs later.
    pub(super) async fn end(
        &mut self,
        config: &Config,
        AbandonedSession(name): &AbandonedSession,
    ) -> Result<(), StoreError> {
        let ending =
            end(&mut self.connection, name).map_err(|error| error_from(&config.address, error));
        within(config, handshake_limit(config.timing.connect_timeout), ending).await
    }

    /// The session, while it may be abandoned.
    pub(super) fn session(&self) -> AbandonedSession {
        AbandonedSession(self.name.clone())
    }

    /// Closes the connection at once, without waiting for answers.
    pub(super) fn abandon(self) -> AbandonedSession {
        abandon(self.connection);
        AbandonedSession(self.name)
    }
}

/// Runs one step of connecting, within `limit`.
pub(super) async fn within<T>(
    config: &Config,
    limit: Duration,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    match timeout(limit, work).await {
        Ok(outcome) => outcome.map_err(StoreError::not_sent),
        Err(_) => {
            let sentence = format!("{}: {}", config.address, no_answer(limit));
            Err(StoreError::new(sentence).not_sent())
        }
    }
}

/// Locks `name` for the session. Returns whether the server is a MariaDB; `None` if this connection
/// has no session of its own, with the settings that it asked for.
async fn probe(connection: &mut Conn, name: &str) -> Result<Option<bool>, Error> {
    connection.exec_drop("DO GET_LOCK(?, 0)", (name,)).await?;
    // A proxy that shares sessions, or routes a query elsewhere, shows another session in one of
    // these statements.
    let first: Option<Option<u64>> =
        exec_first(connection, "SELECT IS_USED_LOCK(?)", (name,)).await?;
    let session = "SELECT IS_USED_LOCK(?), CONNECTION_ID(), @@SESSION.autocommit, \
                   @@version LIKE '%MariaDB%'";
    let second: Option<(Option<u64>, u64, i64, i64)> =
        exec_first(connection, session, (name,)).await?;
    let greeted = u64::from(connection.id());
    Ok(match (first, second) {
        (Some(Some(first)), Some((Some(holder), own, 1, is_mariadb)))
            if first == own && holder == own && greeted == own =>
        {
            Some(is_mariadb == 1)
        }
        _ => None,
    })
}

fn shared_connection(config: &Config) -> StoreError {
    let sentence = format!(
        "{}: a proxy changes the session of this connection, so no lock can belong to it: connect \
         to the server itself, or through a proxy that forwards each connection as it is",
        config.address
    );
    StoreError::new(sentence).not_sent()
}

/// Ends the session that holds the lock of this name, and returns once it has ended.
async fn end(connection: &mut Conn, name: &str) -> Result<(), Error> {
    // Found by its lock: after a restart of the server, its id may be another session's.
    let id: Option<Option<u64>> = exec_first(connection, "SELECT IS_USED_LOCK(?)", (name,)).await?;
    if let Some(id) = id.flatten() {
        // The session may have ended meanwhile.
        let _gone = connection.query_drop(format!("KILL {id}")).await;
        connection.exec_drop("DO GET_LOCK(?, 60)", (name,)).await?;
        connection.exec_drop("DO RELEASE_LOCK(?)", (name,)).await?;
    }
    Ok(())
}

/// Closes the connection now. Where tasks run, the client would start one that first waits for pending
/// answers. A runtime that has ended runs none, and needs no thread, which the system may refuse.
pub(super) fn abandon(connection: Conn) {
    static ENDED: LazyLock<io::Result<Handle>> = LazyLock::new(|| {
        let runtime = Builder::new_current_thread().build()?;
        let handle = runtime.handle().clone();
        runtime.shutdown_background();
        Ok(handle)
    });
    let _ended = ENDED.as_ref().ok().map(Handle::enter);
    drop(connection);
}

/// The error of the server or of the connection to it.
pub(super) fn error_from(address: &str, error: Error) -> StoreError {
    let sentence = match &error {
        Error::Server(error) => format!("{address}: {}{}", error.message, advice(error.code)),
        Error::Io(IoError::Io(error)) => format!("{address}: {error}"),
        error => format!("{address}: {error}"),
    };
    StoreError::new(sentence).with_source(error)
}

fn advice(code: u16) -> &'static str {
    match code {
        // Access to the database, a table, a procedure; CREATE ROUTINE.
        1044 | 1142 | 1227 | 1370 => {
            "; run `MysqlStore::MIGRATION` as a user with the rights, and grant this user SELECT, \
             INSERT, UPDATE, DELETE and EXECUTE"
        }
        1045 => {
            "; check the password, and whether this user needs TLS or a certificate (`REQUIRE`): \
             `ssl-mode`, `client_cert` and `client_key` in the URL"
        }
        3159 => "; add `ssl-mode=verify_identity` to the URL",
        1290 | 1792 | 1836 => "; name the primary in the URL",
        1665 => "; set `binlog_format` to `ROW` or `MIXED`",
        _ => "",
    }
}

/// Whether the connection is unusable after this error.
pub(super) fn ends_connection(error: &Error) -> bool {
    match error {
        // The server shuts down, has killed the session, or became a replica.
        Error::Server(error) => {
            matches!(error.code, 1053 | 1290 | 1792 | 1836 | 1927 | 3024 | 4031)
        }
        _ => true,
    }
}
