//! Redis goes away and comes back: at start-up, while a caller waits, while it holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockattr::{Error, Lease, LockManager, LockOptions, LostReason};
use lockattr_tests::{Proxy, RedisServer, assert_nothing_left, eventually, in_time, with_query};
use tokio::time::Instant;

use crate::support::is_renewed;

const SECOND: Duration = Duration::from_secs(1);

/// The lease of a guard that has to be renewed: after a third of it, which leaves a slow machine ten seconds.
const TTL: Duration = Duration::from_secs(15);

/// Short timeouts, so that the tests need not wait long for timeout errors.
const QUICK: &str = "response_timeout=200ms&connect_timeout=200ms&heartbeat=300ms";

async fn manager(url: &str) -> LockManager {
    LockManager::connect(url).await.unwrap()
}

/// One that has sent no request yet. What it acquires is requested until it is granted.
fn quick_manager(server: &RedisServer) -> LockManager {
    LockManager::builder().url(server.url_with(QUICK)).build().unwrap()
}

async fn wait_until_lockable(manager: &LockManager) {
    eventually("the manager works again", async || {
        match manager.acquire("again", LockOptions::new().retry(0)).await {
            Ok(guard) => guard.release().await.is_ok(),
            // By an attempt of its own, which is being undone.
            Err(Error::Store { .. } | Error::Contended { .. }) => false,
            Err(other) => panic!("{other:?}"),
        }
    })
    .await;
}

async fn refused_by_store(manager: &LockManager, options: LockOptions) -> Duration {
    let ran = AtomicBool::new(false);
    let started = Instant::now();
    let body = async |_: &Lease| ran.store(true, Ordering::SeqCst);
    let error = in_time(manager.with_lock("a", options, body)).await;
    let Err(Error::Store { key, .. }) = error else { panic!("{error:?}") };
    assert_eq!(key, "a");
    assert!(!ran.load(Ordering::SeqCst), "a body without its lock");
    started.elapsed()
}

#[tokio::test]
async fn not_there_at_start_up() {
    let server = RedisServer::start().await;
    server.kill();
    let error = in_time(LockManager::connect(&server.url())).await;
    assert!(matches!(error, Err(Error::Store { .. })), "{error:?}");

    // `build` lets a program start without a server, and work as soon as the server is there.
    let manager = quick_manager(&server);
    refused_by_store(&manager, LockOptions::new().retry(2)).await;
    let waited = refused_by_store(&manager, LockOptions::new().wait(SECOND)).await;
    assert!(waited >= SECOND, "the wait covers outages too: {waited:?}");
    server.revive().await;
    wait_until_lockable(&manager).await;
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn silent_at_start_up() {
    let server = RedisServer::start().await;
    let work = async {
        let connected = in_time(LockManager::connect(&server.url_with(QUICK))).await;
        assert!(matches!(connected, Err(Error::Store { .. })));
        let manager = quick_manager(&server);
        refused_by_store(&manager, LockOptions::new().retry(1)).await;
        manager
    };
    let manager = server.while_stopped(work).await;
    wait_until_lockable(&manager).await;
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn gone_while_waiting() {
    let server = RedisServer::start().await;
    let holder = manager(&server.url()).await;
    let waiter = quick_manager(&server);
    let held = holder.acquire("a", LockOptions::new()).await.unwrap();
    let waiting = {
        let waiter = waiter.clone();
        tokio::spawn(
            async move { refused_by_store(&waiter, LockOptions::new().wait(2 * SECOND)).await },
        )
    };
    server.kill();
    waiting.await.unwrap();
    server.revive().await;
    wait_until_lockable(&waiter).await;
    assert!(held.release().await.is_err());
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn gone_and_back_while_waiting() {
    let server = RedisServer::start().await;
    let waiter = quick_manager(&server);
    let other = server.cli().await;
    other.query::<String>(&["SET", "lock:a", "another", "PX", "600000"]).await;
    let waiting = {
        let waiter = waiter.clone();
        tokio::spawn(async move { waiter.acquire("a", LockOptions::new()).await })
    };
    server.restart().await;
    drop(in_time(waiting).await.unwrap().expect("the restart freed the lock"));
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn gone_while_holding() {
    let server = RedisServer::start().await;
    let manager = quick_manager(&server);
    let ttl = Duration::from_millis(600);
    let started = Arc::new(tokio::sync::Notify::new());
    let job = {
        let (manager, started) = (manager.clone(), started.clone());
        tokio::spawn(async move {
            let body = async |_: &Lease| {
                started.notify_one();
                std::future::pending::<()>().await;
            };
            manager.with_lock("a", LockOptions::new().ttl(ttl), body).await
        })
    };
    started.notified().await;
    server.kill();
    let error = in_time(job).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Lost { reason: LostReason::Expired, .. }), "{error:?}");
    server.revive().await;
    wait_until_lockable(&manager).await;
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn frozen_while_holding_and_thawed_before_the_deadline() {
    let server = RedisServer::start().await;
    let manager = quick_manager(&server);
    let guard = manager.acquire("a", LockOptions::new().ttl(TTL)).await.unwrap();
    // Longer than a renewal interval and several response timeouts: unknown, but not lost.
    let overdue = async || guard.remaining() < TTL * 2 / 3 - SECOND;
    server.while_stopped(eventually("a renewal is overdue", overdue)).await;
    is_renewed(&guard).await;
    guard.ensure_held().unwrap();
    drop(guard);
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_body_ends_well_while_the_store_is_away_and_its_release_is_made_up_for() {
    let server = RedisServer::start().await;
    let manager = quick_manager(&server);
    let cli = server.cli().await;
    let body = async |_: &Lease| {
        server.stop_signal();
        17
    };
    assert_eq!(manager.with_lock("a", LockOptions::new(), body).await.unwrap(), 17);
    server.continue_signal();
    eventually("released after all", async || cli.value("lock:a").await.is_none()).await;
}

#[tokio::test]
async fn an_acquire_without_an_answer_is_undone() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let url = with_query(&server.url_through(&proxy), QUICK);
    let manager = LockManager::builder().url(url).build().unwrap();
    let cli = server.cli().await;
    wait_until_lockable(&manager).await;
    let before = cli.value("lockattr:fence").await;
    proxy.swallow_replies();
    let executed = async || {
        refused_by_store(&manager, LockOptions::new().retry(0)).await;
        cli.value("lockattr:fence").await != before
    };
    eventually("the server executes one", executed).await;
    proxy.pass();
    assert_nothing_left(&server).await;
    wait_until_lockable(&manager).await;
}

#[tokio::test]
async fn a_silently_dead_connection_is_replaced() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let url = with_query(&server.url_through(&proxy), &format!("{QUICK}&connections=1"));
    let manager = LockManager::builder().url(url).build().unwrap();
    wait_until_lockable(&manager).await;
    eventually("it has one connection", async || proxy.connections() == 1).await;
    // The old connection stays open and, having lost bytes, silent forever; new ones work.
    proxy.swallow_replies();
    refused_by_store(&manager, LockOptions::new().retry(0)).await;
    proxy.pass();
    wait_until_lockable(&manager).await;
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn killed_connections_come_back_by_themselves() {
    let server = RedisServer::start().await;
    let manager = manager(&server.url()).await;
    let cli = server.cli().await;
    let guard = manager.acquire("held", LockOptions::new()).await.unwrap();
    for _ in 0..5 {
        let clients = cli.client_count().await;
        assert!(cli.client_kill_all_others().await > 0, "{clients} clients");
        wait_until_lockable(&manager).await;
    }
    guard.ensure_held().unwrap();
    eventually("it is renewed", async || guard.extend(1200 * SECOND).await.is_ok()).await;
    drop(guard);
    assert_nothing_left(&server).await;
}

/// As in a program with several `#[tokio::test]`s and one manager: each runtime ends, the manager
/// stays.
#[test]
fn one_manager_serves_one_runtime_after_the_other() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let server = first.block_on(RedisServer::start());
    let manager = LockManager::builder().url(server.url()).build().unwrap();
    for _ in 0..2 {
        let runtime = runtime();
        runtime.block_on(async {
            let options = LockOptions::new().ttl(TTL).retry(0);
            let guard = manager.acquire("a", options).await.unwrap();
            is_renewed(&guard).await;
            guard.release().await.unwrap();
        });
    }
    first.block_on(assert_nothing_left(&server));
}

/// The end of a runtime takes the watchdog's task along; leases of other runtimes are still
/// renewed.
#[test]
fn a_runtime_that_ends_does_not_stop_the_renewals_of_another() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().unwrap()
    };
    let (short, long) = (runtime(), runtime());
    let server = long.block_on(RedisServer::start());
    let manager = LockManager::builder().url(server.url()).build().unwrap();
    let ttl = LockOptions::new().ttl(TTL);
    // The watchdog starts on the runtime that takes the first lock.
    let first = short.block_on(manager.acquire("short", ttl.clone())).unwrap();
    let second = long.block_on(manager.acquire("long", ttl)).unwrap();
    drop(first);
    drop(short);
    long.block_on(async {
        is_renewed(&second).await;
        second.release().await.unwrap();
    });
}

/// A connect goes on for the other callers when one caller's timeout ends.
#[tokio::test]
async fn a_caller_with_a_short_timeout_does_not_abort_the_connect_of_others() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let url = with_query(&server.url_through(&proxy), "connections=1");
    let manager = LockManager::builder().url(&url).build().unwrap();
    proxy.delay(Duration::from_millis(200));
    let options = LockOptions::new().wait(Duration::from_millis(50));
    let error = manager.acquire("a", options).await.unwrap_err();
    assert!(matches!(error, Error::Store { .. }), "{error:?}");
    manager.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
    assert_eq!(proxy.connections(), 1, "the same connect served both");
}

/// After a failover the old address may answer as a replica from then on.
#[tokio::test]
async fn a_server_that_became_a_replica_is_left() {
    let server = RedisServer::start().await;
    let manager = manager(&server.url_with("connections=1")).await;
    let cli = server.cli().await;
    cli.query::<String>(&["REPLICAOF", "127.0.0.1", "1"]).await;
    let received = async || {
        let stats: String = cli.query(&["INFO", "stats"]).await;
        let line = stats.lines().find_map(|l| l.strip_prefix("total_connections_received:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    let before = received().await;
    for _ in 0..2 {
        refused_by_store(&manager, LockOptions::new().retry(0)).await;
    }
    assert_eq!(received().await, before + 1, "the second attempt used a new connection");
    cli.query::<String>(&["REPLICAOF", "NO", "ONE"]).await;
    wait_until_lockable(&manager).await;
}

#[test]
fn a_connect_on_an_undriven_runtime_delays_no_other() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (still, driven) = (runtime(), runtime());
    let server = driven.block_on(RedisServer::start());
    let manager = LockManager::builder().url(server.url_with("connections=1")).build().unwrap();
    let mut stuck = Box::pin(manager.acquire("a", LockOptions::new()));
    still.block_on(async {
        let once = std::future::poll_fn(|context| {
            std::task::Poll::Ready(stuck.as_mut().poll(context).is_ready())
        });
        assert!(!once.await, "granted without a connection");
    });
    driven.block_on(async {
        let guard = in_time(manager.acquire("a", LockOptions::new())).await.unwrap();
        guard.release().await.unwrap();
    });
}

/// A request that was not sent needs no undo, and a failed connect is not repeated for each caller.
#[tokio::test]
async fn an_outage_causes_no_storm_of_requests() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let manager = manager(&with_query(&server.url_through(&proxy), "connections=1")).await;
    let cli = server.cli().await;
    proxy.refuse().await;
    proxy.cut().await;
    for _ in 0..2_000 {
        let error = manager.try_acquire("a", LockOptions::new()).await.unwrap_err();
        assert!(matches!(error, Error::Store { .. }));
    }
    cli.reset_stats().await;
    proxy.accept().await;
    wait_until_lockable(&manager).await;
    manager.shutdown().await;
    let scripts = cli.commandstats().await.get("evalsha").copied().unwrap_or_default();
    assert!(
        scripts < 10,
        "{scripts} scripts for one lock: releases of requests that were never sent"
    );
}
