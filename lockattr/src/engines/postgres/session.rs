//! The start of each connection: its settings, the tables, and that it is the only one in its slot.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::PostgresStore;
use super::config::Config;
use super::failure::failure_of;
use crate::store::StoreError;

/// Prepares a new connection for locking, in the slot with this number.
pub(super) async fn begin(
    client: &Client,
    config: &Config,
    slot_lock: i64,
) -> Result<(), StoreError> {
    let failed = |error| failure_of(&config.address, error).error;
    let (settings, locked) = (settings(config), take_slot_lock(slot_lock));
    // All in one round trip.
    let (applied, locked, installed) = tokio::join!(
        client.batch_execute(&settings),
        client.batch_execute(&locked),
        client.simple_query(IS_INSTALLED)
    );
    applied.and(locked).map_err(failed)?;
    match installed {
        Ok(_) => Ok(()),
        Err(error) if is_missing(&error) => client.batch_execute(&install()).await.map_err(failed),
        Err(error) => Err(failed(error)),
    }
}

/// Overrides settings of the database, its owner or the user's role.
fn settings(config: &Config) -> String {
    // The largest values that the server and its system accept.
    let limit = config.timing.response_timeout.as_millis().clamp(1, 2_000_000_000);
    let beat = config.timing.heartbeat.as_secs().clamp(1, 32_767);
    format!(
        // The join skips settings that this server does not know.
        "select set_config(name, value, false) from (values
            -- The server stops a statement when its client stops waiting for it.
            ('statement_timeout', '{limit}'), ('lock_timeout', '0'),
            ('transaction_timeout', '0'),
            -- The functions must see what other transactions have just committed.
            ('default_transaction_isolation', 'read committed'),
            -- A connection may be idle for as long as a lock is held.
            ('idle_session_timeout', '0'),
            -- The server must not take a client that vanished for one that listens.
            ('tcp_keepalives_idle', '{beat}'), ('tcp_keepalives_interval', '{beat}'),
            ('tcp_keepalives_count', '3'),
            -- A plan that was made while the tables were empty must also suit full tables.
            ('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'),
            ('plan_cache_mode', 'force_generic_plan'),
            ('client_min_messages', 'error')
        ) as ours (name, value) join pg_settings using (name)"
    )
}

/// Ends the session that was left in this slot, if the server still has it, and acquires the
/// advisory lock that each session holds while it lives. A request on a silent connection may still
/// be in the socket of a frozen server. It must not run after the requests of this connection.
fn take_slot_lock(slot_lock: i64) -> String {
    format!(
        // A session that waits for a standby has committed, and would report that at once if ended.
        // One that checks whether this session listens shares its lock for a moment.
        "select pg_terminate_backend(pid) from pg_locks join pg_stat_activity using (pid)
            where wait_event is distinct from 'SyncRep'
                and locktype = 'advisory' and objsubid = 1 and granted and mode = 'ExclusiveLock'
                and classid::bigint << 32 | objid::bigint = {slot_lock}
                and database = (select oid from pg_database where datname = current_database());
        select pg_advisory_lock({slot_lock})"
    )
}

/// Fails where the functions of this version are missing.
const IS_INSTALLED: &str = "select 'lockattr_force_release_2'::regproc";

fn is_missing(error: &tokio_postgres::Error) -> bool {
    let missing = [&SqlState::UNDEFINED_FUNCTION, &SqlState::UNDEFINED_TABLE];
    error.code().is_some_and(|code| missing.contains(&code))
}

/// Runs in one transaction, and in one process at a time.
fn install() -> String {
    let number = i64::from_be_bytes(*b"lockattr");
    format!("select pg_advisory_xact_lock({number});\n{}", PostgresStore::MIGRATION)
}
