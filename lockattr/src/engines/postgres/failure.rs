//! What the client's errors mean for the store.

use std::error::Error as _;

use tokio::time::timeout;
use tokio_postgres::error::{DbError, Severity, SqlState};

use super::config::Config;
use crate::engines::dial::{handshake_limit, no_answer};
use crate::store::last_reply::LastReply;
use crate::store::{StoreError, silence};

/// A request without an answer that counts.
pub(super) struct Failure {
    pub(super) error: StoreError,
    /// Whether the connection is unusable, or a new one would do better.
    pub(super) ends_connection: bool,
    /// Whether another transaction made the server roll it back, so that it can be repeated.
    pub(super) is_conflict: bool,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self { error, ends_connection: false, is_conflict: false }
    }
}

/// Errors after which a new connection finds another server, or creates the tables.
const RECONNECT: &[SqlState] = &[
    SqlState::READ_ONLY_SQL_TRANSACTION,
    SqlState::UNDEFINED_FUNCTION,
    SqlState::UNDEFINED_TABLE,
    SqlState::INVALID_SCHEMA_NAME,
    SqlState::UNDEFINED_PSTATEMENT,
];

/// The reason if the server has no TLS.
pub(super) const NO_TLS: &str = "server does not support TLS";

/// A deadlock, a serialization failure, and what `lock_rows.sql` raises.
const CONFLICTS: &[&str] = &["40P01", "40001", "LA001"];

/// What the server answers to a step of the login; an error if that takes longer than it should.
pub(super) async fn connected<T>(
    config: &Config,
    connecting: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let (address, limit) = (&config.address, handshake_limit(config.timing.connect_timeout));
    timeout(limit, connecting)
        .await
        .unwrap_or_else(|_| Err(StoreError::new(format!("{address}: {}", no_answer(limit)))))
}

/// The reply to a request; an error once the server has sent no reply at all for `response_timeout`.
/// A server that replies to other requests of the connection is busy, and not silent.
pub(super) async fn unless_silent<T>(
    config: &Config,
    last_reply: &LastReply,
    request: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Failure> {
    match silence::unless_silent(last_reply, config.timing.response_timeout, request).await {
        Some(reply) => reply.map_err(|error| failure_of(&config.address, error)),
        None => Err(silent(config)),
    }
}

/// The server has sent nothing for `response_timeout`.
pub(super) fn silent(config: &Config) -> Failure {
    let (address, limit) = (&config.address, config.timing.response_timeout);
    let error = StoreError::new(format!("no answer from {address} within {limit:?}"));
    Failure { error, ends_connection: true, is_conflict: false }
}

pub(super) fn failure_of(address: &str, error: tokio_postgres::Error) -> Failure {
    let Some(db_error) = error.as_db_error() else {
        let reason = error.source().map(ToString::to_string).unwrap_or_default();
        let advice = match &*reason {
            NO_TLS => {
                " (set `ssl = on` there; `sslmode=prefer` or `disable` would send passwords and \
                 owner tokens in plaintext)"
            }
            _ => "",
        };
        let reason = if reason.is_empty() { reason } else { format!(": {reason}") };
        let sentence = format!("{address}: {error}{reason}{advice}");
        let error = StoreError::new(sentence).with_source(error);
        return Failure { error, ends_connection: true, is_conflict: false };
    };
    let code = db_error.code();
    let fatal = db_error.parsed_severity() != Some(Severity::Error);
    let (ends_connection, is_conflict) =
        (fatal || RECONNECT.contains(code), CONFLICTS.contains(&code.code()));
    let failure = StoreError::new(format!("{address}: {}", describe(db_error)));
    // An error rolls back its transaction. One that ends the session may come after the commit.
    let failure = if fatal { failure } else { failure.not_sent() };
    Failure { error: failure.with_source(error), ends_connection, is_conflict }
}

fn describe(db_error: &DbError) -> String {
    let hint = db_error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
    let advice = match *db_error.code() {
        SqlState::READ_ONLY_SQL_TRANSACTION => {
            "; the server is a standby, or read-only: name the primary, or all servers with \
             `target_session_attrs=read-write`"
        }
        SqlState::INSUFFICIENT_PRIVILEGE => {
            "; lockattr's tables are missing, or this user has no rights on them: run \
             `PostgresStore::migration` as a user with the rights, and grant this user access"
        }
        SqlState::INVALID_SCHEMA_NAME => {
            "; create it, or name another schema for lockattr's tables with `schema=` in the URL"
        }
        SqlState::OUT_OF_MEMORY => {
            "; all clients of a server share its lock table: lock fewer keys at once, or raise \
             `max_locks_per_transaction` in the server's configuration"
        }
        _ => "",
    };
    format!("{}{hint}{advice}", db_error.message())
}
