//! Processes that were killed, stopped or cut off delay the others by one TTL at most, however many
//! waiters they had, in every mode.

use std::sync::Arc;

use lockattr::Mode;
use lockattr_tests::{Node, Proxy, RedisServer, node};
use tokio::time::sleep;

use super::killed::held;
use super::*;

/// Longer than the delay by a dead process (two seconds for [`SHORT`]), and shorter than it once
/// was.
const PATIENT: Duration = Duration::from_secs(8);

fn shared() -> LockOptions {
    LockOptions::new().mode(Mode::Shared)
}

/// A process with waiters that ask for leases of `ttl`, once it is queued for `a`.
async fn waiters(server: &RedisServer, ttl: &str, order: &str) -> Node {
    let mut node = node!("lock", url = server.url_with(&format!("ttl={ttl}&wait=60s")));
    node.say(order).await;
    assert_eq!(node.line().await, "waits");
    more_wait(&server.cli().await, 0).await;
    node
}

/// Waits until more than `count` entries are queued for `a`.
async fn more_wait(cli: &Cli, count: usize) {
    eventually(LIMIT, "it waits", async || queued(cli, "a").await > count).await;
}

/// A reader holds, and a writer that waits for it is killed: the next reader is kept out for as
/// long as the writer's entry lasts, not for as long as there are readers.
#[tokio::test]
async fn a_killed_writer_keeps_readers_out_for_a_ttl_at_most() {
    let server = RedisServer::start().await;
    let (first, next) = (manager(&server, LONG).await, manager(&server, LONG).await);
    let reader = first.acquire("a", shared()).await.unwrap();
    waiters(&server, "1s", "crowd 1 exclusive a").await.kill();
    let guard = next.acquire("a", shared().wait(PATIENT)).await.expect("only readers hold it");
    reader.ensure_held().unwrap();
    guard.release().await.unwrap();
    reader.release().await.unwrap();
    drop((first, next));
    assert_no_trace(&server).await;
}

/// A process that waited for `a` and `b` is killed, and `b` is held: `a` becomes free.
#[tokio::test]
async fn a_killed_waiter_for_two_keys_keeps_the_free_one_for_a_ttl_at_most() {
    let server = RedisServer::start().await;
    let (first, next) = (manager(&server, LONG).await, manager(&server, LONG).await);
    let holder = first.acquire("b", LockOptions::new()).await.unwrap();
    waiters(&server, "4s", "crowd 1 exclusive a b").await.kill();
    // In the first second such a claim can be passed over.
    sleep(Duration::from_millis(1_200)).await;
    let guard = next.acquire("a", LockOptions::new().wait(PATIENT)).await.expect("`a` is free");
    guard.release().await.unwrap();
    holder.release().await.unwrap();
    drop((first, next));
    assert_no_trace(&server).await;
}

/// Twenty waiters of a stopped process cost the time of one grant.
#[tokio::test]
async fn a_stopped_process_costs_one_ttl_however_many_waiters_it_has() {
    let orders = ["exclusive a", "permits=1 a", "shared a", "exclusive a b"];
    for order in orders {
        let server = RedisServer::start().await;
        let (first, next) = (manager(&server, LONG).await, manager(&server, LONG).await);
        let holder = acquire(&first).await;
        let mut stopped = waiters(&server, "1s", &format!("crowd 20 {order}")).await;
        stopped.stop_signal();
        let cli = server.cli().await;
        let before = queued(&cli, "a").await;
        let waits = LockOptions::new().wait(PATIENT);
        // Permits are only shared with permits.
        let waits = if order == "permits=1 a" { waits.permits(1) } else { waits };
        let waiter = tokio::spawn(async move { next.acquire("a", waits).await });
        more_wait(&cli, before).await;
        holder.release().await.unwrap();
        let guard = waiter.await.unwrap().unwrap_or_else(|error| panic!("{order}: {error}"));
        guard.release().await.unwrap();
        // A continued process queues again, and gets in.
        stopped.continue_signal();
        assert!(stopped.finish().await.success());
        drop(first);
        assert_no_trace(&server).await;
    }
}

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
        more_wait(&server.cli().await, 0).await;
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

/// Ten callers give up while their network is cut. Once it is back, nothing of theirs delays
/// others.
#[tokio::test]
async fn waiters_that_gave_up_while_they_were_cut_off_delay_no_other() {
    let server = RedisServer::start().await;
    let (first, next) = (manager(&server, LONG).await, manager(&server, LONG).await);
    let proxy = Proxy::start(server.addr()).await;
    let query = "ttl=2s&wait=60s&connections=1&response_timeout=500ms";
    let url = format!("{}?{query}", server.url_through(&proxy));
    let fickle = Arc::new(LockManager::connect(&url).await.unwrap());
    let permit = LockOptions::new().permits(1);
    let holder = first.acquire("a", permit.clone()).await.unwrap();
    let mut waiters = JoinSet::new();
    for _ in 0..10 {
        let (fickle, permit) = (fickle.clone(), permit.clone());
        waiters.spawn(async move { fickle.acquire("a", permit).await.map(drop) });
    }
    let cli = server.cli().await;
    more_wait(&cli, 0).await;
    proxy.freeze();
    waiters.shutdown().await;
    // Longer than a lease, after which a release is no longer retried.
    sleep(Duration::from_secs(3)).await;
    let questions = async || cli.commandstats().await.get("evalsha").copied().unwrap_or_default();
    let before = questions().await;
    let waiter = tokio::spawn(async move { next.acquire("a", permit.wait(PATIENT)).await });
    eventually(LIMIT, "it waits", async || questions().await > before).await;
    proxy.cut().await;
    proxy.pass();
    // Their process waits for another lock, so it would receive a grant for the callers that are
    // gone.
    let elsewhere = first.acquire("b", LockOptions::new()).await.unwrap();
    let listens = tokio::spawn(async move { fickle.acquire("b", LockOptions::new()).await });
    eventually(LIMIT, "it listens", async || queued(&cli, "b").await > 0).await;
    holder.release().await.unwrap();
    waiter.await.unwrap().expect("the others have given up").release().await.unwrap();
    elsewhere.release().await.unwrap();
    listens.await.unwrap().unwrap().release().await.unwrap();
    drop(first);
    assert_no_trace(&server).await;
}

/// The waiter that would learn of a shorter lease has given up: the one behind it asks again on its
/// own.
#[tokio::test]
async fn a_killed_holder_behind_a_waiter_that_gave_up_costs_one_ttl() {
    let server = RedisServer::start().await;
    let (first, next) = (manager(&server, LONG).await, manager(&server, LONG).await);
    let proxy = Proxy::start(server.addr()).await;
    let holder = acquire(&first).await;
    let mut short = node!("lock", url = server.url_with("ttl=1s&wait=60s"));
    short.say("acquire a").await;
    wait_until_queued(&server.cli().await, 1).await;
    let url = format!("{}?{SHORT}", server.url_through(&proxy));
    let fickle = LockManager::connect(&url).await.unwrap();
    let gives_up = tokio::spawn(async move { fickle.acquire("a", LockOptions::new()).await });
    wait_until_queued(&server.cli().await, 2).await;
    let waits = LockOptions::new().wait(PATIENT);
    let waiter = tokio::spawn(async move { next.acquire("a", waits).await });
    wait_until_queued(&server.cli().await, 3).await;
    proxy.freeze();
    gives_up.abort();
    holder.release().await.unwrap();
    held(&mut short).await;
    short.kill();
    // Its lease of one second, and the grant to the waiter that gave up, which lasts two.
    let guard = waiter.await.unwrap().expect("all before it are gone");
    guard.release().await.unwrap();
    proxy.pass();
    drop(first);
    assert_no_trace(&server).await;
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
    let waits = LockOptions::new().wait(PATIENT);
    let waiter = tokio::spawn(async move { next.acquire("a", waits).await });
    wait_until_queued(&server.cli().await, 6).await;
    holder.release().await.unwrap();
    waiter.await.unwrap().expect("the others are dead").release().await.unwrap();
    drop((first, monitor));
    assert_no_trace(&server).await;
}

/// Another program deletes the key: the waiter asks again after a `retry_delay`, not after 15
/// seconds.
#[tokio::test]
async fn a_waiter_acquires_a_deleted_lock_within_its_retry_delay() {
    let server = RedisServer::start().await;
    let (cli, first) = (server.cli().await, manager(&server, LONG).await);
    let next = manager(&server, LONG).await;
    let holder = acquire(&first).await;
    let waits = LockOptions::new().wait(PATIENT);
    let waiter = tokio::spawn(async move { next.acquire("a", waits).await });
    wait_until_queued(&cli, 1).await;
    let _: u32 = cli.query(&["DEL", "lock:a"]).await;
    let guard = waiter.await.unwrap().expect("the lock is free");
    assert!(matches!(holder.release().await, Err(lockattr::Error::Lost { .. })));
    guard.release().await.unwrap();
    drop(first);
    assert_no_trace(&server).await;
}
