//! What processes that are gone leave behind, and what removes it.

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{eventually, in_time, node};

use super::Database;

#[tokio::test]
async fn rows_of_killed_processes_are_swept() {
    let database = Database::new().await;
    let mut node = node!("lock", url = database.url(""));
    node.say("acquire a").await;
    assert!(node.line().await.starts_with("held "));
    let mut waits = node!("lock", url = database.url(""));
    waits.say("acquire a").await;
    let line = "SELECT COUNT(*) FROM lockattr_v2_queue WHERE IS_USED_LOCK(CONCAT('lockattr:', listener)) > 0";
    eventually("queued", async || database.number(line).await == 1).await;
    node.kill();
    waits.kill();
    eventually("it is gone", async || database.number(line).await == 0).await;
    // As if an hour had passed.
    database.execute("UPDATE lockattr_v2_locks SET ends = ends - 3600000000").await;
    database.execute("UPDATE lockattr_v2_queue SET asked = asked - 3600000000").await;
    database.sweep_is_due().await;
    // Each new connection asks at once whether a sweep is due.
    let _connected = database.manager("").await;
    database.holds_nothing().await;
}

/// Red without: nothing in particular. An expired row must not keep the next caller out.
#[tokio::test]
async fn an_expired_lease_is_taken_over() {
    let database = Database::new().await;
    let mut node = node!("lock", url = database.url(""));
    node.say("acquire a").await;
    assert!(node.line().await.starts_with("held "));
    node.kill();
    database.execute("UPDATE lockattr_v2_locks SET ends = ends - 3600000000").await;
    let manager = database.manager("").await;
    let guard = manager.try_acquire("a", LockOptions::new()).await.unwrap().expect("it is over");
    guard.release().await.unwrap();
    database.holds_nothing().await;
}

#[tokio::test]
async fn claims_for_crossing_keys_neither_fail_nor_leave_anything() {
    let database = Database::new().await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..6_usize {
        let url = database.url("");
        tasks.spawn(async move {
            let manager = LockManager::connect(&url).await.unwrap();
            for round in 0..25 {
                let keys = [0, 1, 2].map(|nth| format!("k{}", (n * 3 + round * 5 + nth * 7) % 8));
                let guard = manager.acquire_all(&keys, LockOptions::new()).await.unwrap();
                guard.release().await.unwrap();
            }
        });
    }
    in_time(tasks.join_all()).await;
    database.holds_nothing().await;
}
