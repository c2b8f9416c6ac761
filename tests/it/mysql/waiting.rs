//! A waiter is notified, and sends no requests meanwhile.

use std::time::Duration;

use lockattr::LockOptions;
use lockattr_tests::{MariaDb, eventually, in_time, node, with_query};
use mysql_async::prelude::Queryable;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::{BY_ITSELF, Database, take_turns};

/// As many waiters as twenty processes, each with four connections.
#[tokio::test]
async fn twenty_waiters_send_no_request_while_nothing_changes() {
    let server = MariaDb::with(&[]).await;
    server.execute("mysql", "CREATE DATABASE quiet").await;
    let url = with_query(&server.url_of("quiet"), "heartbeat=1h");
    let holder = lockattr::LockManager::connect(&url).await.unwrap();
    let held = holder.acquire("a", LockOptions::new()).await.unwrap();
    let mut waiters = JoinSet::new();
    for _ in 0..20 {
        let url = url.clone();
        waiters.spawn(async move {
            let manager = lockattr::LockManager::connect(&url).await.unwrap();
            let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
            guard.release().await.unwrap();
        });
    }
    let mut cli = server.cli("quiet").await;
    let mut number = async |query: &str| cli.query_first::<i64, _>(query).await.unwrap().unwrap();
    let line = "SELECT COUNT(*) FROM lockattr_v2_queue";
    eventually("all queued", async || number(line).await == 20).await;
    let mut questions = async || {
        let rows = "SHOW GLOBAL STATUS LIKE 'Questions'";
        cli.query_first::<(String, i64), _>(rows).await.unwrap().unwrap().1
    };
    let (began, before) = (Instant::now(), questions().await);
    sleep(Duration::from_secs(8)).await;
    let asked = questions().await - before;
    // The waiters and the holder: what each still sends at first, and then, in each full period, a query that
    // sleeps for ten seconds and a request that keeps the entry for another five.
    let seconds = i64::try_from(began.elapsed().as_secs()).unwrap();
    let most = 21 * (4 + seconds / 10 + seconds / 5);
    assert!(asked <= most, "{asked} statements in {seconds} s, and not {most}");

    held.release().await.unwrap();
    in_time(waiters.join_all()).await;
    let empty = async || server.left_in("quiet").await.is_empty();
    eventually("nothing is left", empty).await;
}

#[tokio::test]
async fn a_waiter_that_was_killed_is_passed_over_at_once() {
    let database = Database::new().await;
    let manager = database.manager("").await;
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    let mut dead = node!("lock", url = database.url(""));
    dead.say("acquire a").await;
    database.has_queued(1).await;
    let other = database.manager("").await;
    let next = tokio::spawn(async move {
        let guard = other.acquire("a", LockOptions::new()).await.unwrap();
        guard.release().await.unwrap();
    });
    database.has_queued(2).await;
    dead.kill();
    // The server must first notice that its connections have ended.
    let ears = "SELECT COUNT(*) FROM lockattr_v2_queue WHERE IS_USED_LOCK(CONCAT('lockattr:', listener)) > 0";
    eventually("it is known to be gone", async || database.number(ears).await == 1).await;
    // If it were granted the lock, that would be for ten minutes.
    held.release().await.unwrap();
    in_time(next).await.unwrap();
    database.holds_nothing().await;
}

/// A stopped process keeps its connection, and sends no request.
#[tokio::test]
async fn a_waiter_that_sends_no_more_requests_is_passed_over() {
    let database = Database::new().await;
    let manager = database.manager("").await;
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    let mut stopped = node!("lock", url = database.url(""));
    stopped.say("acquire a").await;
    database.has_queued(1).await;
    stopped.stop_signal();
    let other = database.manager("").await;
    let next = tokio::spawn(async move {
        let guard = other.acquire("a", LockOptions::new()).await.unwrap();
        guard.release().await.unwrap();
    });
    database.has_queued(2).await;
    let ages = "UPDATE lockattr_v2_queue SET asked = asked - 60000000 ORDER BY place LIMIT 1";
    database.execute(ages).await;
    // If it were granted the lock, that would be for nine minutes.
    held.release().await.unwrap();
    in_time(next).await.unwrap();
    stopped.kill();
    database.holds_nothing().await;
}

/// Red without: the interruption (`KILL QUERY` in `release.sql`). Each hand-off would take five seconds, until
/// the waiter asks by itself.
#[tokio::test]
async fn the_next_waiter_is_notified_at_once() {
    let database = Database::new().await;
    take_turns([database.manager("").await, database.manager("").await], 20).await;
    database.holds_nothing().await;
}

/// An administrator ends the sleeping connection: the waiters join the queue again.
#[tokio::test]
async fn a_waiter_whose_listening_connection_is_ended_listens_again() {
    let database = Database::new().await;
    let manager = database.manager("").await;
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    let other = database.manager("").await;
    let next = tokio::spawn(async move {
        let guard = other.acquire("a", LockOptions::new()).await.unwrap();
        guard.release().await.unwrap();
    });
    let ear = "SELECT COALESCE(MAX(SUBSTRING(listener, 18) + 0), 0) FROM lockattr_v2_queue";
    eventually("queued", async || database.number(ear).await > 0).await;
    // A thread without a core may ask so late that it would have asked anyway.
    let at_once = async || {
        let (first, before) = (database.number(ear).await, database.asked().await);
        database.execute(&format!("KILL {first}")).await;
        let again = async || database.number(ear).await != first;
        eventually("it listens again", again).await;
        database.asked().await < before + BY_ITSELF
    };
    eventually("it listens again at once", at_once).await;
    held.release().await.unwrap();
    in_time(next).await.unwrap();
    database.holds_nothing().await;
}
