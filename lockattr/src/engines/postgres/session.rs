//! The start of each connection: its settings, the tables, and that it is the only one in its slot.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::config::Config;
use super::failure::failure_of;
use super::pooler::{column, first_row};
use super::schema::SEARCH_PATH;
use crate::store::StoreError;

/// How long a process waits while others create the tables.
const INSTALLED_WITHIN: Duration = Duration::from_secs(30);

/// Prepares a new connection for locking, in the slot with this number. Returns whether the tables
/// and functions are there.
pub(super) async fn begin(
    client: &Client,
    config: &Config,
    slot_lock: i64,
) -> Result<bool, StoreError> {
    let failed = |error| failure_of(&config.address, error).error;
    let (settings, locked) = (settings(config), take_slot_lock(slot_lock));
    let (visible, installed) = (config.schema.others(), config.schema.is_installed());
    // All in one round trip. The first asks about the search path that the second replaces.
    let (visible, applied, locked, installed) = tokio::join!(
        client.simple_query(&visible),
        client.batch_execute(&settings),
        client.batch_execute(&locked),
        client.simple_query(&installed)
    );
    applied.and(locked).map_err(failed)?;
    let visible = visible.map_err(failed)?;
    if let Some(other) = first_row(&visible).and_then(|row| column(row, 0)) {
        return Err(config.schema.refuse(&config.address, other));
    }
    is_installed(config, &installed.map_err(failed)?)
}

/// Creates the tables and functions, unless another process does so first. The wait for that process
/// is no silence of the server, so it has a limit of its own.
pub(super) async fn install(client: &Client, config: &Config) -> Result<(), StoreError> {
    let failed = |error| failure_of(&config.address, error).error;
    let installed = async {
        client.batch_execute(&take_migration_lock()).await.map_err(failed)?;
        let found = client.simple_query(&config.schema.is_installed()).await.map_err(failed)?;
        // The process that had the lock before has created them.
        let migration = match is_installed(config, &found)? {
            true => String::new(),
            false => config.schema.migration(),
        };
        client.batch_execute(&format!("{migration}; commit")).await.map_err(failed)
    };
    timeout(INSTALLED_WITHIN, installed).await.unwrap_or_else(|_| {
        let address = &config.address;
        Err(StoreError::new(format!(
            "another process has been creating lockattr's tables at {address} for \
             {INSTALLED_WITHIN:?}"
        )))
    })
}

/// Overrides settings of the database, its owner or the user's role.
fn settings(config: &Config) -> String {
    // The largest values that the server and its system accept.
    let limit = config.timing.response_timeout.as_millis().clamp(1, 2_000_000_000);
    let beat = config.timing.heartbeat.as_secs().clamp(1, 32_767);
    replaced(&format!(
        "-- The server stops a statement when its client stops waiting for it.
            ('statement_timeout', '{limit}'),
            -- The server must not take a client that vanished for one that listens.
            ('tcp_keepalives_idle', '{beat}'), ('tcp_keepalives_interval', '{beat}'),
            ('tcp_keepalives_count', '3'),
            -- A plan that avoids what is off below, and cannot, counts as so costly that the server
            -- would compile it: for longer than a connection needs for all else.
            ('jit', 'off'),
            -- A plan that was made while the tables were empty must also suit full tables.
            ('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'),
            ('plan_cache_mode', 'force_generic_plan')"
    ))
}

/// Replaces the settings of a session that all of ours depend on, and these.
pub(super) fn replaced(more: &str) -> String {
    format!(
        // The join skips settings that this server does not know.
        "{SEARCH_PATH}; select set_config(name, value, false) from (values
            -- The functions must see what other transactions have just committed.
            ('default_transaction_isolation', 'read committed'),
            ('default_transaction_read_only', 'off'),
            -- A session may be idle, or wait, for as long as a lock is held.
            ('lock_timeout', '0'), ('transaction_timeout', '0'), ('idle_session_timeout', '0'),
            -- What a literal means, also within the functions.
            ('standard_conforming_strings', 'on'), ('DateStyle', 'ISO'),
            ('client_min_messages', 'error'),
            {more}
        ) as ours (name, value) join pg_settings using (name)"
    )
}

/// Ends the session that was left in this slot, if the server still has it, and acquires the
/// advisory lock that each session holds while it lives. A request on a silent connection may still
/// be in the socket of a frozen server. It must not run after the requests of this connection.
fn take_slot_lock(slot_lock: i64) -> String {
    format!("{}; select pg_advisory_lock({slot_lock})", terminate(slot_lock))
}

/// Ends the session in this slot, and waits until it has ended.
pub(super) fn end_session(slot_lock: i64) -> String {
    format!("{}; select pg_advisory_xact_lock_shared({slot_lock})", terminate(slot_lock))
}

fn terminate(slot_lock: i64) -> String {
    format!(
        // A session that waits for a standby has committed, and would report that at once if ended.
        // One that checks whether this session listens shares its lock for a moment.
        "select pg_terminate_backend(pid) from pg_locks join pg_stat_activity using (pid)
            where wait_event is distinct from 'SyncRep'
                and locktype = 'advisory' and objsubid = 1 and granted and mode = 'ExclusiveLock'
                and classid::bigint << 32 | objid::bigint = {slot_lock}
                and database = (select oid from pg_database where datname = current_database())"
    )
}

/// Whether the first row has `true` first.
pub(super) fn is_true(messages: &[SimpleQueryMessage]) -> bool {
    first_row(messages).is_some_and(|row| column(row, 0) == Some("t"))
}

/// Reads whether the tables and functions are there.
fn is_installed(config: &Config, messages: &[SimpleQueryMessage]) -> Result<bool, StoreError> {
    match first_row(messages).and_then(|row| column(row, 0)) {
        Some("t") => Ok(true),
        Some("f") => Ok(false),
        other => Err(StoreError::new(format!(
            "{}: the server was asked whether lockattr's functions are there, and replied with \
             {other:?}, and not with a `bool`",
            config.address
        ))),
    }
}

/// Begins the transaction that creates the tables, of which there is one at a time.
fn take_migration_lock() -> String {
    let number = i64::from_be_bytes(*b"lockattr");
    // The client gives up first, and closes its connection.
    let limit = 2 * INSTALLED_WITHIN.as_millis();
    format!("begin; set local statement_timeout = {limit}; select pg_advisory_xact_lock({number})")
}
