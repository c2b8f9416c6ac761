//! What dead processes cost on one Redis server, beside what `queue_promises` tests on each store.

use lockattr_tests::{RedisServer, node};
use tokio::time::sleep;

use super::killed::held;
use super::*;

/// A process holds the lock, waits for it in another mode, and is stopped. Its lease ends, and a
/// grant to its waiters also ends one TTL after the stop.
#[tokio::test]
async fn a_stopped_process_that_holds_and_waits_costs_one_ttl() {
    // Readers of the holder's process wait inside it, and have no entry.
    let orders = ["permits=2 a", "exclusive a b"];
    let cases = orders.map(async |order| {
        let server = RedisServer::start().await;
        let next = manager(&server, &format!("{LONG}&retry_delay=100ms")).await;
        let mut stopped = node!("lock", url = server.url_with("ttl=4s&wait=60s"));
        stopped.say("acquire a").await;
        held(&mut stopped).await;
        // Its lease must end before its entry.
        sleep(Duration::from_secs(1)).await;
        stopped.say(&format!("crowd 5 {order}")).await;
        assert_eq!(stopped.line().await, "waits");
        let cli = server.cli().await;
        eventually("it waits", async || queued(&cli, "a").await > 0).await;
        stopped.stop_signal();
        // Less than its lease plus that of a grant.
        let waits = LockOptions::new().wait(Duration::from_millis(5_500));
        let guard = next.acquire("a", waits).await;
        guard.unwrap_or_else(|error| panic!("{order}: {error}")).release().await.unwrap();
        stopped.kill();
        drop(next);
        assert_no_trace(&server).await;
    });
    futures_util::future::join_all(cases).await;
}

/// A tool that subscribes to every channel does not make a dead process look alive for longer than
/// its entry lasts.
#[tokio::test]
async fn dead_waiters_cost_one_ttl_while_a_monitor_subscribes_to_every_channel() {
    let server = RedisServer::start().await;
    let client = redis::Client::open(server.url()).unwrap();
    let mut monitor = client.get_async_pubsub().await.unwrap();
    monitor.psubscribe("*").await.unwrap();
    let (first, next) = (manager(&server, LONG).await, manager(&server, LONG).await);
    let holder = acquire(&first).await;
    for place in 1..=5 {
        let mut node = node!("lock", url = server.url_with(SHORT));
        node.say("acquire a").await;
        wait_until_queued(&server.cli().await, place).await;
        node.kill();
    }
    // Longer than the delay by a dead process, and shorter than it once was.
    let waits = LockOptions::new().wait(Duration::from_secs(8));
    let waiter = tokio::spawn(async move { next.acquire("a", waits).await });
    wait_until_queued(&server.cli().await, 6).await;
    holder.release().await.unwrap();
    waiter.await.unwrap().expect("the others are dead").release().await.unwrap();
    drop((first, monitor));
    assert_no_trace(&server).await;
}
