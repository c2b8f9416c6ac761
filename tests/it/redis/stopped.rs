//! A process that is stopped for longer than its lease, as in a long pause of its machine, and then
//! goes on as if no time had passed.

use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{RedisServer, assert_nothing_left, eventually, node};

const LONG: Duration = Duration::from_secs(3_600);

/// The body of an annotated function has written once when its process stops itself. When the
/// process continues, both the deadline and what the body waits for have arrived.
async fn the_body_writes_no_more(on_lost: &str) {
    let server = RedisServer::start().await;
    let mut node = node!("job", url = server.url_with("ttl=15s"), on_lost = on_lost);
    node.say("write").await;
    assert_eq!(node.line().await, "wrote");
    node.say("sleep").await;
    node.stands_still().await;
    // The next holder waits for the lease to end.
    let cli = server.cli().await;
    eventually("the lease ends", async || cli.value("lock:job").await.is_none()).await;
    let next = LockManager::connect(&server.url()).await.unwrap();
    let successor = next.acquire("job", LockOptions::new().ttl(LONG)).await.unwrap();
    node.continue_signal();
    let answer = node.line().await;
    assert!(answer.starts_with("ended the lease on `job` was lost"), "the body said: {answer}");
    successor.release().await.expect("the late release did no harm");
    assert!(node.finish().await.success());
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn no_line_of_an_annotated_body_runs_after_the_await_it_slept_in() {
    the_body_writes_no_more("cancel").await;
}

/// With `on_lost = error` the body does go on; its own check uses the clock.
#[tokio::test]
async fn a_body_that_continues_and_checks_its_lease_before_it_writes_is_refused() {
    the_body_writes_no_more("error").await;
}

/// Shorter than its lease: nothing is lost, and it is renewed again.
#[tokio::test]
async fn a_process_that_slept_for_less_than_its_lease_remains_the_holder() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let mut node = node!("job", url = server.url_with("ttl=30s"));
    node.say("write").await;
    assert_eq!(node.line().await, "wrote");
    node.say("sleep").await;
    node.stands_still().await;
    // Past its renewal time, and far from its end.
    eventually("a renewal is overdue", async || cli.pttl("lock:job").await < 19_000).await;
    node.continue_signal();
    assert_eq!(node.line().await, "wrote");
    eventually("it is renewed", async || cli.pttl("lock:job").await > 20_000).await;
    assert!(node.finish().await.success());
    assert_nothing_left(&server).await;
}
