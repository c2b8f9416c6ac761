//! More requests than a slow server can serve at once.

use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{MariaDb, eventually, in_time, with_query};
use mysql_async::Row;
use mysql_async::prelude::Queryable;
use tokio::task::JoinSet;

use super::Database;

/// How many processes start together.
const STARTS: u64 = 60;

/// A server whose commits take some milliseconds each, as on a slow disk. MySQL has no option for
/// that; there, only the number of requests is large.
async fn slow_server() -> MariaDb {
    if MariaDb::runs_mysql() {
        return MariaDb::with(&[]).await;
    }
    MariaDb::with(&[
        "--log-bin",
        "--server-id=1",
        "--binlog-format=ROW",
        "--binlog-commit-wait-count=1000",
        "--binlog-commit-wait-usec=8000",
    ])
    .await
}

/// 300 callers with two locks each send requests that share no statement, so that the last of them
/// wait for longer than the response timeout. The manager asks for a lock again, but not who has
/// it. Meanwhile a lease with a short TTL is renewed.
///
/// Red without: silence that counts from when a statement was sent, and not from when a request was
/// queued.
#[tokio::test]
async fn a_long_queue_of_requests_loses_no_lease_and_fails_no_release() {
    let server = slow_server().await;
    let name = server.database().await;
    let url = with_query(&server.url_of(&name), "connections=1&response_timeout=1s");
    let manager = LockManager::connect(&url).await.unwrap();
    let ttl = Duration::from_secs(15);
    let renewed = manager.acquire("renewed", LockOptions::new().ttl(ttl)).await.unwrap();
    let mut tasks = JoinSet::new();
    for nth in 0..300 {
        let manager = manager.clone();
        tasks.spawn(async move {
            for _ in 0..2 {
                let keys = [format!("own{nth}"), format!("second{nth}")];
                let guard = manager.acquire_all(&keys, LockOptions::new()).await.unwrap();
                assert!(manager.holder(&keys[0]).await.unwrap().is_some(), "it is held");
                guard.release().await.unwrap();
            }
        });
    }
    in_time(tasks.join_all()).await;
    renewed.ensure_held().unwrap();
    renewed.release().await.unwrap();
    let empty = async || server.left_in(&name).await.is_empty();
    eventually("nothing is left", empty).await;
}

/// Sixty processes start at once on an empty database.
///
/// Red without: the second look in `schema::install`.
#[tokio::test]
async fn many_processes_that_start_together_create_the_tables_once() {
    let server = MariaDb::with(&[]).await;
    let count = async |status: &str| {
        let status = format!("SHOW GLOBAL STATUS LIKE 'Com_{status}'");
        let rows: Vec<(String, u64)> = server.query("mysql", &status).await;
        rows[0].1
    };
    let start = |database: &str, nth: u64| {
        let url = with_query(&server.url_of(database), "heartbeat=1h");
        async move {
            let manager = LockManager::connect(url).await.unwrap();
            let guard = manager.acquire(format!("own{nth}"), LockOptions::new()).await.unwrap();
            guard.release().await.unwrap();
        }
    };
    let (before, alone) = (count("create_procedure").await, server.database().await);
    start(&alone, 0).await;
    let of_one = count("create_procedure").await - before;
    assert!(of_one > 0, "the server counts them");
    let name = server.database().await;
    // The first one goes on when all have found nothing.
    let mut first = server.cli(&name).await;
    let lock = "CONCAT('lockattr:schema:', LEFT(SHA2(DATABASE(), 256), 16))";
    first.query_drop(format!("DO GET_LOCK({lock}, 0)")).await.unwrap();
    let looked = count("call_procedure").await;
    let mut tasks = JoinSet::new();
    for nth in 0..STARTS {
        tasks.spawn(start(&name, nth));
    }
    let all = async || count("call_procedure").await - looked >= STARTS;
    eventually("all have looked", all).await;
    first.query_drop(format!("DO RELEASE_LOCK({lock})")).await.unwrap();
    in_time(tasks.join_all()).await;
    // On a slow machine, some wait too long for the lock, and create them too.
    let of_all = count("create_procedure").await - before - of_one;
    assert!(of_all < STARTS * of_one, "each has created them");
    let empty = async || server.left_in(&name).await.is_empty();
    eventually("nothing is left", empty).await;
}

/// A request that was given up may be executed late, after an `extend`.
///
/// Red without: `GREATEST` in `acquire.sql`.
#[tokio::test]
async fn a_late_request_shortens_no_lease() {
    let database = Database::new().await;
    let manager = database.manager("").await;
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    guard.extend(Duration::from_secs(3600)).await.unwrap();
    let ends = "SELECT ends FROM lockattr_v2_locks";
    let before = database.number(ends).await;
    // The request of the same claim once more.
    let row: Vec<(String, String)> =
        database.server.query(&database.name, "SELECT token, value FROM lockattr_v2_locks").await;
    let (token, value) = &row[0];
    let mut cli = database.server.cli(&database.name).await;
    let again = "CALL lockattr_v2_acquire(1, 'lock:a', ?, ?, 10000000, 'x', 0, '', 0)";
    let reply: Option<Row> = cli.exec_first(again, (token, value)).await.unwrap();
    let number = reply.and_then(|reply| reply.get::<Option<u64>, _>(0)).flatten();
    assert!(number.is_some(), "it has the lock");
    let after = database.number(ends).await;
    assert!(after >= before, "the lease ends {} s earlier", (before - after) / 1_000_000);
    guard.ensure_held().unwrap();
    guard.release().await.unwrap();
    database.holds_nothing().await;
}
