//! A process that is stopped for longer than its lease, as in a long pause of its machine, and then
//! goes on as if no time had passed.

use std::time::Duration;

use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_tests::{Node, RedisServer, assert_nothing_left, eventually, node};

const LIMIT: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_secs(60);

/// Waits for the lease on `key` to end, and acquires the lock as its successor.
async fn succeed(server: &RedisServer, key: &str) -> LockGuard {
    let (cli, name) = (server.cli().await, format!("lock:{key}"));
    eventually(LIMIT, "the lease ends", async || cli.value(&name).await.is_none()).await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    manager.acquire(key, LockOptions::new().ttl(LONG)).await.unwrap()
}

/// A node inside the body of its annotated function, which has written once.
async fn node_at_work(server: &RedisServer, on_lost: &str) -> Node {
    let mut node = node!("job", url = server.url_with("ttl=500ms"), on_lost = on_lost);
    node.say("write").await;
    assert_eq!(node.line().await, "wrote");
    node
}

/// When the process continues, both the deadline and what the body waits for have arrived.
#[tokio::test]
async fn no_line_of_an_annotated_body_runs_after_the_await_it_slept_in() {
    let server = RedisServer::start().await;
    let mut node = node_at_work(&server, "cancel").await;
    node.say("sleep").await;
    node.stands_still().await;
    let successor = succeed(&server, "job").await;
    node.continue_signal();
    let reply = node.line().await;
    assert!(reply.starts_with("ended the lease on `job` was lost"), "the body replied: {reply}");
    successor.release().await.expect("another process held it meanwhile");
    assert!(node.finish().await.success());
    assert_nothing_left(&server).await;
}

/// With `on_lost = error` the body does go on; its own check uses the clock.
#[tokio::test]
async fn a_body_that_continues_and_checks_its_lease_before_it_writes_is_refused() {
    let server = RedisServer::start().await;
    let mut node = node_at_work(&server, "error").await;
    node.say("sleep").await;
    node.stands_still().await;
    let successor = succeed(&server, "job").await;
    node.continue_signal();
    let reply = node.line().await;
    assert!(reply.starts_with("ended the lease on `job` was lost"), "the body replied: {reply}");
    successor.release().await.expect("the late release did no harm");
    assert!(node.finish().await.success());
    assert_nothing_left(&server).await;
}

/// Stopped at any point, with a guard: once continued, the process knows of the loss.
#[tokio::test]
async fn a_process_that_slept_past_its_lease_writes_no_more() {
    let server = RedisServer::start().await;
    let mut node = node!("lock", url = server.url_with("ttl=500ms"));
    node.say("acquire a").await;
    assert!(node.line().await.starts_with("held "));
    node.say("write").await;
    assert_eq!(node.line().await, "written");

    node.stop_signal();
    let successor = succeed(&server, "a").await;
    // The order is already in its input when it is continued.
    node.say("write").await;
    node.continue_signal();
    let reply = node.line().await;
    assert!(reply.starts_with("refused the lease on `a` was lost"), "{reply}");
    node.say("release").await;
    let reply = node.line().await;
    assert!(reply.starts_with("refused the lease on `a` was lost"), "{reply}");
    successor.release().await.expect("the late release did no harm");
    assert_nothing_left(&server).await;
}

/// Shorter than its lease: nothing is lost, and it is renewed again.
#[tokio::test]
async fn a_process_that_slept_for_less_than_its_lease_remains_the_holder() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let mut node = node!("job", url = server.url_with("ttl=6s"));
    node.say("write").await;
    assert_eq!(node.line().await, "wrote");
    node.say("sleep").await;
    node.stands_still().await;
    // Past its renewal time, and far from its end.
    eventually(LIMIT, "a renewal is overdue", async || cli.pttl("lock:job").await < 3_500).await;
    node.continue_signal();
    assert_eq!(node.line().await, "wrote");
    eventually(LIMIT, "it is renewed", async || cli.pttl("lock:job").await > 4_500).await;
    assert!(node.finish().await.success());
    assert_nothing_left(&server).await;
}
