//! Several processes: no update is lost, and the lock of a killed process is freed, whatever the
//! process was doing.

use std::process::Command;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{
    Node, Proxy, RedisServer, assert_nobody_listens, assert_nothing_left, eventually, in_time,
    node, with_query,
};

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
    let mut node = node!("lock", url = server.url());
    node.say("acquire a").await;
    assert!(node.line().await.starts_with("held "));
    assert!(node.finish().await.success());
    assert_nothing_left(&server).await;
}

/// Asserts that this lock, whose holder is dead, becomes free when its lease ends: not before, and not
/// never.
async fn free_after_its_ttl_and_not_before(server: &RedisServer, key: &str) {
    let (cli, name) = (server.cli().await, format!("lock:{key}"));
    let manager = LockManager::connect(&server.url()).await.unwrap();
    let left = cli.pttl(&name).await;
    assert!((1..=600_000).contains(&left), "a killed process cannot release: {left}");
    assert!(manager.try_acquire(key, LockOptions::new()).await.unwrap().is_none());
    cli.query::<()>(&["PEXPIRE", &name, "1"]).await;
    in_time(manager.acquire(key, LockOptions::new())).await.unwrap().release().await.unwrap();
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
    let mut node = node!("leave", url = server.url_with("ttl=20s"), count = 1, how = "forgotten");
    assert_eq!(node.line().await, "holding");
    let value = cli.value("lock:0").await.expect("it holds");
    eventually("it ages", async || cli.pttl("lock:0").await < 15_000).await;
    eventually("it is renewed", async || cli.pttl("lock:0").await > 17_000).await;
    assert_eq!(cli.value("lock:0").await, Some(value), "by the same claim all the time");
    node.kill();
    free_after_its_ttl_and_not_before(&server, "0").await;
}

#[tokio::test]
async fn a_process_killed_while_it_waits_leaves_nothing() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    cli.query::<String>(&["SET", "lock:a", "another", "PX", "600000"]).await;
    let mut node = node!("lock", url = server.url());
    node.say("acquire a").await;
    let asked = async || cli.commandstats().await.get("evalsha").is_some_and(|calls| *calls > 2);
    eventually("it retries", asked).await;
    node.kill();
    // The server knows.
    assert_nobody_listens(&server).await;
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
    let mut node = node!("lock", url = server.url_through(&proxy));
    // The node is connected, and able to work.
    node.say("fence b 1").await;
    node.line().await;
    proxy.swallow_replies();
    node.say("acquire a").await;
    eventually("granted", async || cli.value("lock:a").await.is_some()).await;
    node.kill();
    free_after_its_ttl_and_not_before(&server, "a").await;
}

/// It had begun to release, but no request reached the server.
#[tokio::test]
async fn a_process_killed_while_its_release_is_cut_off_holds_for_a_ttl() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let url = with_query(&server.url_through(&proxy), "response_timeout=1s");
    let mut node = holder(url).await;
    proxy.swallow_requests();
    node.say("release").await;
    // From here on it retries on its own.
    let reply = node.line().await;
    assert!(reply.starts_with("refused the request to the store for `a` failed"), "{reply}");
    node.kill();
    free_after_its_ttl_and_not_before(&server, "a").await;
}

/// Its release took effect; the process died before it read the answer.
#[tokio::test]
async fn a_process_killed_after_its_release_was_executed_holds_nothing() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let proxy = Proxy::start(server.addr()).await;
    let mut node = holder(server.url_through(&proxy)).await;
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
    command.env("LOCKATTR_URL", server.url());
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
