//! The first start: many processes find no tables, and one creates them.

use futures_util::future::join_all;
use lockattr_tests::in_time;
use tokio::time::sleep;

use super::*;

/// The lock that a process holds while it creates the tables.
const MIGRATION_LOCK: i64 = i64::from_be_bytes(*b"lockattr");

/// Notes each process of the server that creates a function.
const NOTE_CREATORS: &str = "
    create table creators (pid int);
    create function note_creator() returns event_trigger language plpgsql as $$
        begin insert into public.creators values (pg_backend_pid()); end $$;
    create event trigger noted on ddl_command_end when tag in ('CREATE FUNCTION')
        execute function note_creator()";

async fn holds_migration_lock(database: &Database) -> tokio_postgres::Client {
    let client = database.server.client_of(&database.name).await;
    client.execute("select pg_advisory_lock($1)", &[&MIGRATION_LOCK]).await.unwrap();
    client
}

/// Counts the sessions that wait for the lock, or waits until there are some.
async fn waiting_to_create(database: &Database, at_least: i64) {
    let count = "select count(*) from pg_locks
        where locktype = 'advisory' and not granted
            and database = (select oid from pg_database where datname = current_database())";
    let there = async || database.number(count).await >= at_least;
    eventually(&format!("{at_least} wait"), there).await;
}

/// Red without: `IS_MISSING` in `install`, once the lock is held.
#[tokio::test]
async fn of_many_processes_one_creates_the_tables_and_all_succeed() {
    const PROCESSES: i64 = 32;
    let database = Database::new().await;
    database.run(NOTE_CREATORS).await;
    let others = holds_migration_lock(&database).await;
    let url = database.url_with("connections=1");
    let starts = (0..PROCESSES).map(|_| {
        let url = url.clone();
        tokio::spawn(async move { LockManager::connect(&url).await })
    });
    let starts: Vec<_> = starts.collect();
    waiting_to_create(&database, PROCESSES).await;
    others.execute("select pg_advisory_unlock_all()", &[]).await.unwrap();
    let mut managers = Vec::new();
    for start in join_all(starts).await {
        managers.push(start.unwrap().unwrap());
    }
    assert_eq!(database.number("select count(distinct pid) from creators").await, 1);
    for (nth, manager) in managers.iter().enumerate() {
        acquire(manager, &format!("k{nth}")).await.release().await.unwrap();
    }
    database.has_nothing_left().await;
}

/// Red without: the limit of its own for the wait, at the client or at the server.
#[tokio::test]
async fn waiting_for_the_process_that_creates_the_tables_is_no_silence_of_the_server() {
    let database = Database::new().await;
    let others = holds_migration_lock(&database).await;
    let query = "connections=1&connect_timeout=1s&response_timeout=1s";
    let begins = LockManager::builder().url(database.url_with(query)).build().unwrap();
    // It begins again if a server that is busy with other tests lets it wait before.
    let start = tokio::spawn(async move { acquire(&begins, "a").await });
    let waits = &format!(
        "select coalesce(max(pid), 0)::bigint from pg_locks where locktype = 'advisory' and not granted
            and classid::bigint << 32 | objid::bigint = {MIGRATION_LOCK}
            and database = (select oid from pg_database where datname = current_database())"
    );
    waiting_to_create(&database, 1).await;
    let waiting = database.number(waits).await;
    // Both timeouts pass.
    sleep(Duration::from_millis(2_500)).await;
    assert_eq!(database.number(waits).await, waiting, "it gave up");
    others.execute("select pg_advisory_unlock_all()", &[]).await.unwrap();
    drop(in_time(start).await.unwrap());
    database.has_nothing_left().await;
}
