//! Settings of a server, a user or a key that make no difference.

use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{MariaDb, eventually, with_query};
use mysql_async::prelude::Queryable;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::HOUR;
use crate::every_way::lock_in_every_way;

/// Modes that change the meaning of SQL, another time zone, the strictest isolation, and a binary
/// log.
#[tokio::test]
async fn unusual_server_settings_make_no_difference() {
    let server = MariaDb::with(&[
        "--sql-mode=ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,IGNORE_SPACE",
        "--transaction-isolation=SERIALIZABLE",
        "--default-time-zone=+05:45",
        "--character-set-server=latin1",
        "--collation-server=latin1_swedish_ci",
        "--autocommit=0",
        "--log-bin",
        "--server-id=1",
        "--binlog-format=ROW",
    ])
    .await;
    server.execute("mysql", "CREATE DATABASE odd").await;
    let url = with_query(&server.url_of("odd"), "ttl=1h");
    let (here, there) =
        (LockManager::connect(&url).await.unwrap(), LockManager::connect(&url).await.unwrap());
    for key in ["a", "A", "a'b\\", "ä\"💰", "%_"] {
        let guard = here.acquire(key, LockOptions::new()).await.unwrap();
        assert!(there.try_acquire(key, LockOptions::new()).await.unwrap().is_none());
        let left = there.holder(key).await.unwrap().expect("held").remaining.expect("for a while");
        assert!(left > HOUR / 2 && left <= HOUR, "{left:?}");
        let waiting = there.clone();
        let next = tokio::spawn(async move {
            waiting.acquire(key, LockOptions::new()).await.unwrap().release().await
        });
        let line = "SELECT COUNT(*) FROM lockattr_v2_queue";
        let stands = async || server.query::<i64>("odd", line).await == [1];
        eventually("queued", stands).await;
        guard.release().await.unwrap();
        next.await.unwrap().unwrap();
    }
    eventually("nothing is left", async || server.left_in("odd").await.is_empty()).await;
    assert_no_variable_matters(&server).await;
}

/// The server's values for sessions that do not set their own: replies that are cut or refused, no
/// writes, and what changes the meaning of a statement.
const BREAKING: [&str; 11] = [
    "sql_select_limit = 1",
    "max_join_size = 1",
    "sql_safe_updates = 1",
    "sql_auto_is_null = 1",
    "sql_buffer_result = 1",
    "max_sort_length = 64",
    "foreign_key_checks = 0",
    "character_set_connection = 'latin1'",
    "character_set_results = 'latin1'",
    "character_set_client = 'latin1'",
    "TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY",
];

/// Sets all of them, and has each commit begin a transaction, or end the connection.
async fn assert_no_variable_matters(server: &MariaDb) {
    // They do not concern a connection that is open already.
    let root = Mutex::new(server.cli("odd").await);
    root.lock().await.query_drop("SET SESSION autocommit = 1").await.unwrap();
    let queued = async || {
        let count = "SELECT COUNT(*) FROM lockattr_v2_queue";
        root.lock().await.query_first::<i64, _>(count).await.unwrap() == Some(1)
    };
    let url = server.url_of("odd");
    for completion in ["completion_type = 'CHAIN'", "completion_type = 'RELEASE'"] {
        for variable in BREAKING.iter().chain(&[completion]) {
            root.lock().await.query_drop(format!("SET GLOBAL {variable}")).await.unwrap();
        }
        lock_in_every_way(&url, &url, &queued).await;
    }
}

/// A waiter has one statement running all the time, which may exceed such a limit. With leases it
/// is a `SELECT`, which both servers limit; with `lock=session` it is a `CALL`, which only MariaDB
/// limits.
#[tokio::test]
async fn a_waiter_stays_in_the_queue_where_the_server_limits_statements() {
    // MySQL's option is in milliseconds, MariaDB's in seconds.
    let limit =
        if MariaDb::runs_mysql() { "--max-execution-time=1000" } else { "--max-statement-time=1" };
    let server = MariaDb::with(&[limit]).await;
    for (form, sleepers) in [("lease", 2), ("session", 1)] {
        server.execute("mysql", &format!("CREATE DATABASE odd_{form}")).await;
        let url = server.url_of(&format!("odd_{form}"));
        let url = with_query(&url, &format!("lock={form}"));
        // Each acquires until its connections have replaced that limit.
        let manager = || LockManager::builder().url(&url).build().unwrap();
        let (here, there) = (manager(), manager());
        let guard = here.acquire("a", LockOptions::new()).await.unwrap();
        let next = tokio::spawn(async move {
            there.acquire("a", LockOptions::new()).await.unwrap().release().await
        });
        let waits = format!(
            "SELECT id FROM information_schema.processlist \
             WHERE state = 'User lock' AND db = 'odd_{form}'"
        );
        let sleeping = async || server.query::<i64>("mysql", &waits).await;
        let mut first = Vec::new();
        // With leases, the holder listens as well.
        let all = async || {
            first = sleeping().await;
            first.len() == sleepers
        };
        eventually("it waits", all).await;
        sleep(Duration::from_millis(2500)).await;
        // Both may be awake for a moment. A connection whose statement was ended is replaced and
        // does not come back.
        let same = async || {
            let now = sleeping().await;
            first.iter().all(|id| now.contains(id))
        };
        eventually("it still waits there", same).await;
        guard.release().await.unwrap();
        next.await.unwrap().unwrap();
        assert!(here.try_acquire("a", LockOptions::new()).await.unwrap().is_some());
    }
}
