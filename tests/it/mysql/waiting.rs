//! A waiter is notified, and sends no requests meanwhile.

use std::time::Duration;

use lockattr::LockOptions;
use lockattr_tests::{MariaDb, eventually, in_time, node, with_query};
use mysql_async::prelude::Queryable;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::{Database, LIMIT};

/// As many waiters as twenty processes, each with four connections.
#[tokio::test]
async fn twenty_waiters_send_no_request_while_nothing_changes() {
    let server = MariaDb::with(&[]).await;
    server.execute("mysql", "CREATE DATABASE quiet").await;
    let url = with_query(&server.url_of("quiet"), "heartbeat=60s&ttl=60s");
    let holder = lockattr::LockManager::connect(&url).await.unwrap();
    let held = holder.acquire("a", LockOptions::new()).await.unwrap();
    let mut waiters = JoinSet::new();
    for _ in 0..20 {
        let url = url.clone();
        waiters.spawn(async move {
            let manager = lockattr::LockManager::connect(&url).await.unwrap();
            let guard = manager.acquire("a", LockOptions::new().wait(LIMIT * 3)).await.unwrap();
            guard.release().await.unwrap();
        });
    }
    let mut cli = server.cli("quiet").await;
    let mut number = async |query: &str| cli.query_first::<i64, _>(query).await.unwrap().unwrap();
    let line = "SELECT COUNT(*) FROM lockattr_v2_queue";
    eventually("all queued", async || number(line).await == 20).await;
    sleep(Duration::from_millis(200)).await;
    let mut questions = async || {
        let rows = "SHOW GLOBAL STATUS LIKE 'Questions'";
        cli.query_first::<(String, i64), _>(rows).await.unwrap().unwrap().1
    };
    let before = questions().await;
    sleep(Duration::from_secs(5)).await;
    let asked = questions().await - before;
    // Each sleeping query is restarted every ten seconds: at most once in five seconds.
    assert!(asked <= 20 + 1 + 2, "{asked} statements in five idle seconds");

    held.release().await.unwrap();
    in_time(waiters.join_all()).await;
    let empty = async || server.left_in("quiet").await.is_empty();
    eventually("nothing is left", empty).await;
}

#[tokio::test]
async fn a_waiter_that_was_killed_is_passed_over_at_once() {
    let database = Database::new().await;
    let manager = database.manager("ttl=30s").await;
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    let mut dead = node!("lock", url = database.url("ttl=30s&wait=30s"));
    dead.say("acquire a").await;
    let line = "SELECT COUNT(*) FROM lockattr_v2_queue";
    eventually("queued", async || database.number(line).await == 1).await;
    let other = database.manager("ttl=30s").await;
    let next = tokio::spawn(async move {
        let guard = other.acquire("a", LockOptions::new().wait(LIMIT)).await.unwrap();
        guard.release().await.unwrap();
    });
    eventually("both do", async || database.number(line).await == 2).await;
    dead.kill();
    // The server must first notice that its connections have ended.
    let ears = "SELECT COUNT(*) FROM lockattr_v2_queue WHERE IS_USED_LOCK(CONCAT('lockattr:', listener)) > 0";
    let started = Instant::now();
    eventually("it is known to be gone", async || database.number(ears).await == 1).await;
    assert!(started.elapsed() < Duration::from_secs(9), "only after {:?}", started.elapsed());
    held.release().await.unwrap();
    let waited = Instant::now();
    in_time(next).await.unwrap();
    assert!(waited.elapsed() < Duration::from_secs(9), "only after {:?}", waited.elapsed());
    database.holds_nothing().await;
}

/// Red without: the interruption (`KILL QUERY` in `wake.sql`). Each hand-off would take ten
/// seconds.
#[tokio::test]
async fn the_next_waiter_is_notified_at_once() {
    let database = Database::new().await;
    let (here, there) = (database.manager("").await, database.manager("").await);
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for manager in [here, there] {
        tasks.spawn(async move {
            for _ in 0..50 {
                let guard = manager.acquire("a", LockOptions::new().wait(LIMIT)).await.unwrap();
                guard.release().await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    assert!(began.elapsed() < Duration::from_secs(100), "100 turns took {:?}", began.elapsed());
    database.holds_nothing().await;
}

/// An administrator ends the sleeping connection: the waiters join the queue again.
#[tokio::test]
async fn a_waiter_whose_listening_connection_is_ended_listens_again() {
    let database = Database::new().await;
    let manager = database.manager("ttl=60s").await;
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    let other = database.manager("ttl=60s").await;
    let next = tokio::spawn(async move {
        let guard = other.acquire("a", LockOptions::new().wait(LIMIT)).await.unwrap();
        guard.release().await.unwrap();
    });
    let ear = "SELECT COALESCE(MAX(SUBSTRING(listener, 18) + 0), 0) FROM lockattr_v2_queue";
    eventually("queued", async || database.number(ear).await > 0).await;
    let first = database.number(ear).await;
    database.execute(&format!("KILL {first}")).await;
    let again = async || !matches!(database.number(ear).await, ear if ear == 0 || ear == first);
    eventually("it listens again", again).await;
    held.release().await.unwrap();
    in_time(next).await.unwrap();
    database.holds_nothing().await;
}
