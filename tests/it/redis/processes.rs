//! Several processes: nothing lost, and what becomes of the lock of one that is killed or stopped.

use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{RedisServer, assert_nothing_left, eventually, node};

const SECOND: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn four_processes_add_up_without_a_loss() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    cli.query::<String>(&["SET", "count", "0"]).await;
    let mut nodes: Vec<_> = (0..4).map(|_| node!("lock", url = server.url())).collect();
    for node in &mut nodes {
        node.say("add 50").await;
    }
    for node in &mut nodes {
        assert_eq!(node.line().await, "added 50");
    }
    assert_eq!(cli.value("count").await.as_deref(), Some("200"));
    cli.query::<i64>(&["DEL", "count"]).await;
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn the_lock_of_a_killed_process_is_free_after_its_ttl_and_not_before() {
    let server = RedisServer::start().await;
    let mut node = node!("lock", url = server.url_with("ttl=2s"));
    node.say("acquire a").await;
    assert!(node.line().await.starts_with("held "));
    node.kill();

    let manager = LockManager::connect(&server.url()).await.unwrap();
    let cli = server.cli().await;
    let left = cli.pttl("lock:a").await;
    assert!(left > 0, "a killed process cannot release");
    let waiting = LockOptions::new().wait(LIMIT);
    let guard = manager.acquire("a", waiting).await.unwrap();
    guard.release().await.unwrap();
    assert_nothing_left(&server).await;
}

/// Stopped longer than its lease: the moment it goes on, it knows, before any timer has fired.
#[tokio::test]
async fn a_process_that_slept_past_its_lease_writes_no_more() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let mut node = node!("lock", url = server.url_with("ttl=500ms"));
    node.say("acquire a").await;
    assert!(node.line().await.starts_with("held "));
    node.say("write").await;
    assert_eq!(node.line().await, "written");

    node.stop_signal();
    eventually(LIMIT, "its lease ends", async || cli.value("lock:a").await.is_none()).await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    let guard = manager.acquire("a", LockOptions::new().ttl(60 * SECOND)).await.unwrap();
    // The order already waits for it when it wakes up.
    node.say("write").await;
    node.continue_signal();
    let answer = node.line().await;
    assert!(answer.starts_with("refused the lease on `a` was lost"), "{answer}");
    node.say("release").await;
    let answer = node.line().await;
    assert!(answer.starts_with("refused the lease on `a` was lost"), "{answer}");
    guard.release().await.expect("the late release did no harm");
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_process_that_ends_in_order_leaves_nothing() {
    let server = RedisServer::start().await;
    let mut node = node!("lock", url = server.url_with("ttl=60s"));
    node.say("acquire a").await;
    assert!(node.line().await.starts_with("held "));
    assert!(node.finish().await.success());
    assert_nothing_left(&server).await;
}
