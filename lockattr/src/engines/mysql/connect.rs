//! How a connection is made, and left: with the rules in the database, and nothing of an earlier one
//! still under way.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use tokio::time::timeout;

use super::config::Config;
use super::schema;
use crate::store::StoreError;

/// How long the tables and procedures may take, which are made once: each may wait for the disk.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection, and the name of the lock that its session holds for as long as it lives.
pub(super) struct Live {
    pub(super) connection: Conn,
    name: String,
}

/// The name of a connection that was left while the server may still have been at work for it.
pub(super) struct AbandonedSession(String);

impl Live {
    /// Connects. A session that was left is ended first, so that nothing which it was asked is done
    /// after what this one will be asked.
    pub(super) async fn connect(
        config: &Config,
        left: Option<&AbandonedSession>,
    ) -> Result<Self, StoreError> {
        let limit = config.timing.connect_timeout;
        let connecting = async {
            let mut connection = Conn::new(config.opts.clone()).await?;
            let ready = schema::is_installed(&mut connection).await?;
            Ok((connection, ready))
        };
        let (mut connection, ready) = within(config, limit, connecting).await?;
        if !ready {
            within(config, MIGRATION_TIMEOUT, schema::install(&mut connection)).await?;
        }
        let introducing = async {
            if let Some(AbandonedSession(name)) = left {
                end(&mut connection, name).await?;
            }
            let name = format!("lockattr:connection:{:016x}", rand::random::<u64>());
            connection.exec_drop("DO GET_LOCK(?, 0)", (&name,)).await?;
            Ok(name)
        };
        let name = within(config, limit, introducing).await?;
        Ok(Self { connection, name })
    }

    /// Hangs up at once, whatever it still waits for.
    pub(super) fn leave(self) -> AbandonedSession {
        abandon(self.connection);
        AbandonedSession(self.name)
    }
}

/// What is done to connect, in time.
async fn within<T>(
    config: &Config,
    limit: Duration,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, StoreError> {
    match timeout(limit, work).await {
        Ok(outcome) => outcome.map_err(|error| error_from(&config.address, error).not_sent()),
        Err(_) => {
            let sentence = format!("no connection to {} within {limit:?}", config.address);
            Err(StoreError::new(sentence).not_sent())
        }
    }
}

/// Ends the session that holds the lock of this name, and returns once it has ended.
async fn end(connection: &mut Conn, name: &str) -> Result<(), Error> {
    // By what it holds: its number may be another's, if the server was restarted.
    let id: Option<Option<u64>> = connection.exec_first("SELECT IS_USED_LOCK(?)", (name,)).await?;
    if let Some(id) = id.flatten() {
        // It may have ended by itself meanwhile.
        let _gone = connection.query_drop(format!("KILL {id}")).await;
        connection.exec_drop("DO GET_LOCK(?, 60)", (name,)).await?;
        connection.exec_drop("DO RELEASE_LOCK(?)", (name,)).await?;
    }
    Ok(())
}

/// Hangs up. The client would wait for answers that are under way before it does so, unless there is
/// no runtime.
pub(super) fn abandon(connection: Conn) {
    std::thread::spawn(move || drop(connection));
}

/// What the server, or the way to it, answered instead.
pub(super) fn error_from(address: &str, error: Error) -> StoreError {
    let sentence = match &error {
        Error::Server(error) => format!("{address}: {}{}", error.message, advice(error.code)),
        Error::Io(error) => format!("{address}: {error}"),
        error => format!("{address}: {error}"),
    };
    StoreError::new(sentence).with_source(error)
}

/// What to do about it, where that is known.
fn advice(code: u16) -> &'static str {
    match code {
        // Access to the database, a table, a procedure; CREATE ROUTINE.
        1044 | 1142 | 1227 | 1370 => {
            "; let somebody with the rights run `MysqlStore::MIGRATION`, and grant this user SELECT, \
             INSERT, UPDATE, DELETE and EXECUTE"
        }
        1290 | 1792 | 1836 => "; name the primary in the URL",
        1665 => "; set `binlog_format` to `ROW` or `MIXED`",
        _ => "",
    }
}

/// Whether a connection is of no use after this.
pub(super) fn ends_connection(error: &Error) -> bool {
    match error {
        // The server shuts down, has killed the session, or became a replica.
        Error::Server(error) => {
            matches!(error.code, 1053 | 1290 | 1792 | 1836 | 1927 | 3024 | 4031)
        }
        _ => true,
    }
}
