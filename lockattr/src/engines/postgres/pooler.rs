//! Detects a pooler that gives a connection another server process for each transaction: a
//! session's locks, its `LISTEN` and its settings would soon belong to another client.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{try_join, try_join3};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

use super::config::Config;
use super::driver::drive;
use super::failure::failure_of;
use crate::store::StoreError;
use crate::store::slots::FAILURE_CACHED_FOR;

/// The result of the last check, shared by all connections of a store.
#[derive(Clone, Default)]
pub(super) struct PoolerCheck(Arc<Mutex<Option<CheckOutcome>>>);

/// When the check ended, and its result.
type CheckOutcome = (Instant, Result<(), StoreError>);

/// After that, the URL may lead to another server.
const CHECK_VALID_FOR: Duration = Duration::from_secs(60);

/// How often the probes ask, because other clients may come and go in the same pool.
const MAX_ROUNDS: usize = 3;

/// Queries the server process, and when it began. No search path is set yet, so each name has its
/// schema.
pub(super) const SERVER_PROCESS: &str = "\
    select pid, pg_catalog.date_part('epoch', backend_start)::pg_catalog.text \
    from pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())";

const COMMIT: &str = "\
    select pid, pg_catalog.date_part('epoch', backend_start)::pg_catalog.text \
    from pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()); commit";

/// Refuses a connection through such a pooler. Checks now and then, for all connections of a store.
///
/// Two connections begin a transaction each, so two of the pool's server processes are taken. A
/// pooler that hands out the last process used, or has no more than two, has given them the process
/// of the first connection. A pooler that hands out processes in turns gives the first connection
/// another one. So a connection either shares its process with another, or changes it.
pub(super) async fn refuse(config: &Config) -> Result<(), StoreError> {
    let mut checked = config.pooler_check.0.lock().await;
    match &*checked {
        Some((at, Ok(()))) if at.elapsed() < CHECK_VALID_FOR => return Ok(()),
        // For the callers that waited meanwhile.
        Some((at, Err(error))) if at.elapsed() < FAILURE_CACHED_FOR => return Err(error.clone()),
        _ => {}
    }
    let outcome = check(config).await.map_err(StoreError::not_sent);
    *checked = Some((Instant::now(), outcome.clone()));
    outcome
}

async fn check(config: &Config) -> Result<(), StoreError> {
    let connect = || ProbeConnection::connect(config);
    let (first, second, third) = try_join3(connect(), connect(), connect()).await?;
    let one = query_process(config, &first.0, SERVER_PROCESS).await?;
    let (mut two, mut three) = (None, None);
    for _ in 0..MAX_ROUNDS {
        // One after the other: the second may have taken the only process.
        for (other, seen) in [(&second, &mut two), (&third, &mut three)] {
            let inside = other.begin(config).await?;
            if inside == one || *seen.get_or_insert_with(|| inside.clone()) != inside {
                return Err(refused(&config.address));
            }
        }
        let still = query_process(config, &first.0, SERVER_PROCESS).await?;
        let (second, third) = try_join(second.commit(config), third.commit(config)).await?;
        if two == three
            || still != one
            || [Some(second), Some(third)] != [two.clone(), three.clone()]
        {
            return Err(refused(&config.address));
        }
    }
    Ok(())
}

/// A probing connection, which ends when this value is dropped.
struct ProbeConnection(Client, tokio::task::AbortHandle);

impl ProbeConnection {
    async fn connect(config: &Config) -> Result<Self, StoreError> {
        let login = config.login().await?;
        let (client, connection) = config.connect(&login).await?;
        Ok(Self(client, tokio::spawn(drive(connection, |_| ())).abort_handle()))
    }

    async fn begin(&self, config: &Config) -> Result<Process, StoreError> {
        let begin = format!("begin; {SERVER_PROCESS}");
        match timeout(config.timing.response_timeout, self.0.simple_query(&begin)).await {
            Ok(Ok(messages)) => server_process(&messages).ok_or_else(|| refused(&config.address)),
            // A pooler in statement mode has no transactions.
            Ok(Err(error)) if error.as_db_error().is_some() => Err(refused(&config.address)),
            Ok(Err(error)) => Err(failure_of(&config.address, error).error),
            Err(_) => Err(too_small(config)),
        }
    }

    /// Commits, and returns the server process after that.
    async fn commit(&self, config: &Config) -> Result<Process, StoreError> {
        let (committed, after) = tokio::join!(
            query_process(config, &self.0, COMMIT),
            query_process(config, &self.0, SERVER_PROCESS)
        );
        committed.and(after)
    }
}

impl Drop for ProbeConnection {
    fn drop(&mut self) {
        self.1.abort();
    }
}

type Process = (i32, String);

async fn query_process(
    config: &Config,
    client: &Client,
    statement: &str,
) -> Result<Process, StoreError> {
    let limit = config.timing.response_timeout;
    let messages = timeout(limit, client.simple_query(statement)).await.map_err(|_| {
        StoreError::new(format!("no answer from {} within {limit:?}", config.address))
    })?;
    let messages = messages.map_err(|error| failure_of(&config.address, error).error)?;
    server_process(&messages).ok_or_else(|| {
        StoreError::new(format!("{} does not report its server process", config.address))
    })
}

/// Reads the answer of a simple query for [`SERVER_PROCESS`].
pub(super) fn server_process(messages: &[SimpleQueryMessage]) -> Option<Process> {
    let row = first_row(messages)?;
    Some((column(row, 0)?.parse().ok()?, column(row, 1).unwrap_or_default().to_owned()))
}

/// The first row of the answer of a simple query.
pub(super) fn first_row(messages: &[SimpleQueryMessage]) -> Option<&SimpleQueryRow> {
    messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    })
}

/// A column of the answer of a simple query, if it is there, and text.
pub(super) fn column(row: &SimpleQueryRow, nth: usize) -> Option<&str> {
    row.try_get(nth).ok()?
}

/// The error for such a pooler, and what to do about it.
pub(super) fn refused(address: &str) -> StoreError {
    StoreError::new(format!(
        "{address} is a pooler in transaction or statement mode: each transaction may run in another \
         server process, so locks, `LISTEN` and settings of a session get lost or leak to other \
         clients: connect to the database itself, or to a pool in session mode"
    ))
}

fn too_small(config: &Config) -> StoreError {
    let limit = config.timing.response_timeout;
    let (address, most) = (&config.address, config.timing.database_connections() + 3);
    StoreError::new(format!(
        "{address} accepted another connection and did not reply on it within {limit:?}: if it is a \
         pooler in session mode, its pool is too small or full; this process needs {most} at least"
    ))
}
