//! What dead processes cost on one Redis server, beside what `queue_promises` tests on each store.

use lockattr_tests::{RedisServer, in_time, node};
use tokio::time::{Instant, sleep};

use super::killed::held;
use super::*;

const TTL: Duration = Duration::from_secs(15);

/// A process holds the lock, waits for it in another mode, and is stopped. A grant to its waiters ends one TTL after
/// the stop, however late it comes.
#[tokio::test]
async fn a_stopped_process_that_holds_and_waits_costs_one_ttl() {
    // Readers of the holder's process wait inside it, and have no entry.
    let orders = ["permits=2 a", "exclusive a b"];
    let cases = orders.map(async |order| {
        let server = RedisServer::start().await;
        let next = manager(&server, &format!("{LONG}&retry_delay=100ms")).await;
        let mut stopped = node!("lock", url = server.url_with(SHORT));
        stopped.say("acquire a").await;
        held(&mut stopped).await;
        stopped.say(&format!("crowd 5 {order}")).await;
        assert_eq!(stopped.line().await, "waits");
        let cli = server.cli().await;
        eventually("it waits", async || queued(&cli, "a").await > 0).await;
        stopped.stop_signal();
        let since = Instant::now();
        let waiting = tokio::spawn({
            let next = next.clone();
            async move { acquire(&next).await }
        });
        // So much later than the stop comes the grant.
        sleep(Duration::from_secs(1)).await;
        let theirs = format!("pid={}", stopped.id());
        cli.end_lease("lock:a", &theirs).await;
        let mut lasts = None;
        eventually("its waiter is granted the lock", async || {
            let silent = since.elapsed();
            let holder = next.holder("a").await.unwrap();
            let theirs = holder.filter(|holder| holder.process == Some(stopped.id()));
            lasts = theirs.and_then(|holder| holder.remaining).map(|left| silent + left);
            // The entry of a process that is silent for as long ends, and then there is no such grant.
            lasts.is_some() || waiting.is_finished()
        })
        .await;
        assert!(lasts.is_none_or(|lasts| lasts <= TTL), "{order}: {lasts:?} after the stop");
        eventually("the next gets in", async || {
            cli.end_lease("lock:a", &theirs).await;
            waiting.is_finished()
        })
        .await;
        waiting.await.unwrap().release().await.unwrap();
        stopped.kill();
        drop(next);
        cli.end_lease("lock:b", "").await;
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
    let (cli, first) = (server.cli().await, manager(&server, LONG).await);
    let holder = acquire(&first).await;
    let mut dead = Vec::new();
    for place in 1..=5 {
        let mut node = node!("lock", url = server.url_with("ttl=4s&wait=10h"));
        node.say("acquire a").await;
        wait_until_queued(&cli, place).await;
        dead.push(node);
    }
    let next = manager(&server, LONG).await;
    let waiter = tokio::spawn(async move { acquire(&next).await });
    wait_until_queued(&cli, 6).await;
    for mut node in dead {
        node.kill();
    }
    let over = async || cli.keys("lockattr:waiter:*").await.len() == 1;
    eventually("the entries of the dead have ended", over).await;
    holder.release().await.unwrap();
    in_time(waiter).await.unwrap().release().await.unwrap();
    drop((first, monitor));
    assert_no_trace(&server).await;
}
