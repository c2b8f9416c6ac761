//! Locks that end with a connection, and who is notified.

use lockattr::LockManager;
use lockattr_tests::{Engine, PostgresServer, Wire, eventually, in_time, node, with_query};

use super::{Database, acquire, is_free, manager};

/// Ends all other connections to this database.
const END_ALL: &str = "select pg_terminate_backend(pid) from pg_stat_activity
    where pid <> pg_backend_pid() and datname = current_database()";

#[tokio::test]
async fn the_end_of_its_connection_is_detected_at_once() {
    let database = Database::new().await;
    let (one, two) = (database.sessions("").await, database.sessions("").await);
    let guard = acquire(&one, "a").await;
    database.client().await.batch_execute(END_ALL).await.unwrap();
    in_time(guard.lost()).await;
    assert!(guard.ensure_held().is_err());
    let next = acquire(&two, "a").await;
    assert!(next.fencing_token() > guard.fencing_token());
    assert!(guard.release().await.is_err(), "it was not ours any more");
    next.ensure_held().unwrap();
    next.release().await.unwrap();
    assert!(is_free(&one, "a").await);
    database.nobody_locks().await;
}

#[tokio::test]
async fn a_waiter_joins_the_queue_again_after_its_connection_ended() {
    let database = Database::new().await;
    let (one, two) = (database.sessions("").await, database.sessions("").await);
    let guard = acquire(&one, "a").await;
    let waiter = tokio::spawn(async move { acquire(&two, "a").await.release().await });
    database.waiting(1).await;
    let end = "select pg_terminate_backend(pid) from pg_locks
               where locktype = 'advisory' and not granted
                   and database = (select oid from pg_database where datname = current_database())";
    database.client().await.batch_execute(end).await.unwrap();
    database.waiting(1).await;
    guard.release().await.unwrap();
    in_time(waiter).await.unwrap().unwrap();
    database.nobody_locks().await;
}

/// A waiter reads its grant together with the end of its connection: it held the lock and lost it.
#[tokio::test]
async fn a_grant_that_arrives_with_the_end_of_its_connection_is_discarded() {
    let database = Database::new().await;
    let wire = Wire::start(database.server.addr()).await;
    let url = database.url.replace(&database.server.addr(), &wire.addr());
    let one = database.sessions("").await;
    let behind_wire = manager(&with_query(&url, "lock=session")).await;
    let guard = acquire(&one, "a").await;
    let waiter = tokio::spawn(async move { acquire(&behind_wire, "a").await });
    database.waiting(1).await;
    wire.hold_replies();
    guard.release().await.unwrap();
    let granted = async || (database.locks(true).await, database.locks(false).await) == (1, 0);
    eventually("the server grants it to the waiter", granted).await;
    let end =
        "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted
                   and database = (select oid from pg_database where datname = current_database())";
    database.client().await.batch_execute(end).await.unwrap();
    let next = acquire(&one, "a").await;
    wire.pass().await;
    // It is queued again.
    database.waiting(1).await;
    assert!(!waiter.is_finished());
    next.ensure_held().unwrap();
    let token = next.fencing_token();
    next.release().await.unwrap();
    let guard = in_time(waiter).await.unwrap();
    assert!(guard.fencing_token() > token);
    guard.release().await.unwrap();
    database.nobody_locks().await;
}

/// There is no TTL: the operating system closes the connections of a killed process.
#[tokio::test]
async fn the_lock_of_a_killed_process_is_free_at_once() {
    let database = Database::new().await;
    let url = with_query(&database.url, "lock=session");
    let mut node = node!("lock", url = url.clone());
    node.say("acquire a").await;
    assert!(node.line().await.starts_with("held "));
    let next = manager(&url).await;
    assert!(!is_free(&next, "a").await);
    node.kill();
    let guard = in_time(acquire(&next, "a")).await;
    guard.release().await.unwrap();
    database.nobody_locks().await;
}

/// A killed waiter is skipped.
#[tokio::test]
async fn a_killed_process_leaves_the_queue() {
    let database = Database::new().await;
    let url = with_query(&database.url, "lock=session&heartbeat=500ms");
    let one = manager(&url).await;
    let guard = acquire(&one, "a").await;
    let mut node = node!("lock", url = url.clone());
    node.say("acquire a").await;
    database.waiting(1).await;
    node.kill();
    database.waiting(0).await;
    guard.release().await.unwrap();
    assert!(is_free(&one, "a").await);
    database.nobody_locks().await;
}

#[tokio::test]
async fn fencing_tokens_grow_over_a_crash_of_the_server() {
    let server = PostgresServer::start().await;
    tokens_grow_over_crashes(&server, 70).await;
}

/// Crashes the server three times, with this many acquisitions before each crash.
async fn tokens_grow_over_crashes(server: &PostgresServer, acquisitions: usize) {
    let url = server.url_with("lock=session");
    let one = manager(&url).await;
    let mut last = None;
    for _ in 0..3 {
        for _ in 0..acquisitions {
            let guard = acquire(&one, "a").await;
            assert!(Some(guard.fencing_token()) > last, "after {last:?}");
            last = Some(guard.fencing_token());
            guard.release().await.unwrap();
        }
        server.restart().await;
    }
    assert!(Some(acquire(&one, "a").await.fencing_token()) > last, "after {last:?}");
}

/// A connection ends with the runtime that opened it, and its locks end with the connection.
#[test]
fn the_locks_of_a_runtime_end_with_it() {
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let outer = runtime();
    let database = outer.block_on(Database::new());
    let url = with_query(&database.url, "lock=session");
    let manager = LockManager::builder().url(&url).build().unwrap();
    let other = LockManager::builder().url(&url).build().unwrap();
    let guard = runtime().block_on(acquire(&manager, "a"));
    outer.block_on(async {
        let next = in_time(acquire(&other, "a")).await;
        assert!(guard.ensure_held().is_err(), "two holders");
        next.release().await.unwrap();
        drop(guard);
        database.nobody_locks().await;
    });
}

/// The database is set so that commits do not wait for the disk.
#[tokio::test]
async fn fencing_tokens_grow_over_a_crash_where_commits_do_not_wait() {
    let lazy = ["wal_writer_delay = '10s'", "bgwriter_delay = '10s'"];
    let server = PostgresServer::with(&lazy).await;
    server.run("alter database postgres set synchronous_commit = off").await;
    tokens_grow_over_crashes(&server, 20).await;
}
