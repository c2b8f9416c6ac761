//! Several processes: no update is lost, and the lock of a killed process is freed, whatever the
//! process was doing.

use std::process::Command;
use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Node, Proxy, RedisServer, assert_nothing_left, eventually, node, with_query};
use tokio::time::Instant;

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
async fn a_process_that_ends_in_order_leaves_nothing() {
    let server = RedisServer::start().await;
    let mut node = node!("lock", url = server.url_with("ttl=60s"));
    node.say("acquire a").await;
    assert!(node.line().await.starts_with("held "));
    assert!(node.finish().await.success());
    assert_nothing_left(&server).await;
}

/// Asserts that the lock `a`, whose holder is dead, becomes free when its lease ends: not before,
/// and not never.
async fn free_after_its_ttl_and_not_before(server: &RedisServer) {
    let manager = LockManager::connect(&server.url()).await.unwrap();
    let started = Instant::now();
    let left = server.cli().await.pttl("lock:a").await;
    assert!(left > 0, "a killed process cannot release");
    let guard = manager.acquire("a", LockOptions::new().wait(LIMIT)).await.unwrap();
    let (waited, left) = (started.elapsed(), Duration::from_millis(left.unsigned_abs()));
    // The server counts whole milliseconds.
    assert!(waited + Duration::from_millis(2) >= left, "after {waited:?}, and not {left:?}");
    guard.release().await.unwrap();
    assert_nothing_left(server).await;
}

async fn holder(url: String) -> Node {
    let mut node = node!("lock", url = url);
    node.say("acquire a").await;
    assert!(node.line().await.starts_with("held "));
    node
}

/// A leaked guard is held, and renewed, for as long as its process lives.
#[tokio::test]
async fn a_forgotten_guard_is_renewed_until_its_process_is_killed() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let mut node = node!("leave", url = server.url_with("ttl=2s"), count = 1, how = "forgotten");
    assert_eq!(node.line().await, "holding");
    let value = cli.value("lock:0").await.expect("it holds");
    for _ in 0..3 {
        eventually("it ages", async || cli.pttl("lock:0").await < 1_500).await;
        eventually("it is renewed", async || cli.pttl("lock:0").await > 1_700).await;
    }
    assert_eq!(cli.value("lock:0").await, Some(value), "by the same claim all the time");
    node.kill();
    assert!(cli.pttl("lock:0").await > 0, "a killed process cannot release");
    eventually("free by itself", async || cli.value("lock:0").await.is_none()).await;
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_process_killed_while_it_waits_leaves_nothing() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    cli.query::<String>(&["SET", "lock:a", "another", "PX", "60000"]).await;
    let mut node = node!("lock", url = server.url_with("ttl=60s"));
    node.say("acquire a").await;
    let asked = async || cli.commandstats().await.get("evalsha").is_some_and(|calls| *calls > 2);
    eventually("it retries", asked).await;
    node.kill();
    cli.query::<i64>(&["DEL", "lock:a"]).await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    let guard = manager.try_acquire("a", LockOptions::new()).await.unwrap();
    guard.expect("no connection receives its grant").release().await.unwrap();
    assert_nothing_left(&server).await;
}

/// The grant is on its way to the process, which will never read it.
#[tokio::test]
async fn a_process_killed_before_it_learns_of_its_grant_holds_for_a_ttl() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let proxy = Proxy::start(server.addr()).await;
    let mut node = node!("lock", url = with_query(&server.url_through(&proxy), "ttl=2s"));
    // The node is connected, and able to work.
    node.say("fence b 1").await;
    node.line().await;
    proxy.swallow_replies();
    node.say("acquire a").await;
    eventually("granted", async || cli.value("lock:a").await.is_some()).await;
    node.kill();
    free_after_its_ttl_and_not_before(&server).await;
}

/// It had begun to release, but no request reached the server.
#[tokio::test]
async fn a_process_killed_while_its_release_is_cut_off_holds_for_a_ttl() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let url = with_query(&server.url_through(&proxy), "ttl=3s&response_timeout=200ms");
    let mut node = holder(url).await;
    proxy.swallow_requests();
    node.say("release").await;
    // From here on it retries on its own.
    let reply = node.line().await;
    assert!(reply.starts_with("refused the request to the store for `a` failed"), "{reply}");
    node.kill();
    free_after_its_ttl_and_not_before(&server).await;
}

/// Its release took effect; the process died before it read the answer.
#[tokio::test]
async fn a_process_killed_after_its_release_was_executed_holds_nothing() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let proxy = Proxy::start(server.addr()).await;
    let mut node = holder(with_query(&server.url_through(&proxy), "ttl=60s")).await;
    proxy.swallow_replies();
    node.say("release").await;
    eventually("released", async || cli.value("lock:a").await.is_none()).await;
    node.kill();
    assert_nothing_left(&server).await;
}

/// The example `graceful`, as a person runs it: Ctrl-C in the middle of its work.
#[tokio::test]
async fn the_graceful_example_ends_well_when_it_is_interrupted() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_graceful"));
    command.env("LOCKATTR_URL", server.url_with("ttl=60s"));
    let mut service = Node::run(command);
    assert!(service.line().await.starts_with("worker "));
    eventually("it holds", async || !cli.keys("lock:*").await.is_empty()).await;

    service.interrupt_signal();
    let mut said = vec![service.line().await];
    while said.last().is_none_or(|line| line != "goodbye") {
        said.push(service.line().await);
    }
    assert!(service.finish().await.success());
    let left = cli.keys("lock:*").await;
    assert!(left.is_empty(), "left by a process that exited in order: {left:?}");
    let count = |words: &str| said.iter().filter(|line| line.contains(words)).count();
    assert_eq!(count("shutting down: nothing more is granted"), 1, "{said:#?}");
    assert!(count("was lost: the lock manager is shutting down") >= 1, "{said:#?}");
    assert_eq!(count("was not granted"), 3, "no worker was granted more: {said:#?}");
    assert_eq!((count("all released"), count("is free")), (1, 4), "{said:#?}");
}
