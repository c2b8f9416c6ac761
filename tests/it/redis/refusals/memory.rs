//! Redis is full: it refuses commands that take memory, or evicts.

use lockattr::LockManager;
use lockattr_tests::{Fault, Proxy, RedisServer, assert_nothing_left, eventually, with_query};

use super::{SETTINGS, TTL, lease, manager, refused};
use crate::redis::meddling::is_renewed;

/// A full server grants nothing, but a held lock can be renewed and released, since neither takes
/// memory. That also works over a new connection, though some servers refuse the subscription.
#[tokio::test]
async fn out_of_memory_nothing_is_half_locked_and_what_is_held_is_renewed_and_released() {
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, manager(&server).await);
    let guard = manager.acquire("held", lease(TTL)).await.unwrap();
    let dropped = manager.acquire("dropped", lease(TTL)).await.unwrap();
    let counter = cli.value("lockattr:fence").await;
    cli.query::<()>(&["CONFIG", "SET", "maxmemory", "1"]).await;

    let text = refused(&manager).await;
    assert!(text.contains("OOM"), "{text}");
    assert_eq!(cli.keys("lock:*").await, ["lock:dropped", "lock:held"]);
    assert_eq!(cli.value("lockattr:fence").await, counter);
    let other = LockManager::connect(server.url()).await.unwrap();
    assert!(other.try_acquire("held", lease(TTL)).await.unwrap().is_none(), "known, not unknown");
    is_renewed(&guard, TTL, 2).await;
    cli.client_kill_all_others().await;
    is_renewed(&guard, TTL, 2).await;
    guard.extend(TTL).await.unwrap();
    guard.release().await.unwrap();
    drop(dropped);
    assert_nothing_left(&server).await;

    cli.query::<()>(&["CONFIG", "SET", "maxmemory", "0"]).await;
    manager.acquire("a", lease(TTL)).await.unwrap().release().await.unwrap();
}

/// As Redis 8.6 does, and others do not. A holder is not affected, and learns of waiters for its
/// lock from the next heartbeat on after there is room.
#[tokio::test]
async fn a_full_server_that_refuses_a_subscription_is_subscribed_to_later() {
    let server = RedisServer::start().await;
    let (cli, proxy) = (server.cli().await, Proxy::start(server.addr()).await);
    let oom = "OOM command not allowed when used memory > 'maxmemory'.";
    proxy.always("subscribe", Fault::Answer(oom.into()));
    let url = with_query(&server.url_through(&proxy), SETTINGS);
    let manager = LockManager::connect(url).await.unwrap();
    let guard = manager.try_acquire("held", lease(TTL)).await.unwrap().unwrap();
    is_renewed(&guard, TTL, 2).await;
    let listens = async || {
        let channels: Vec<String> = cli.query(&["PUBSUB", "CHANNELS", "lockattr:*"]).await;
        channels.len() == 1
    };
    assert!(!listens().await);
    proxy.pass();
    eventually("its channel is subscribed to", listens).await;
    guard.release().await.unwrap();
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn fencing_tokens_grow_though_their_counter_was_evicted() {
    let builder = RedisServer::builder().line("maxmemory 4mb");
    let server = builder.line("maxmemory-policy allkeys-lru").start().await;
    let (cli, manager) = (server.cli().await, manager(&server).await);
    let filler = "x".repeat(100_000);
    let mut last = None;
    for round in 0..3 {
        let mut number = 0;
        eventually("the counter is evicted", async || {
            number += 1;
            cli.query::<()>(&["SET", &format!("filler:{round}:{number}"), &filler]).await;
            cli.query::<u8>(&["EXISTS", "lockattr:fence"]).await == 0
        })
        .await;
        let guard = manager.acquire("a", lease(TTL)).await.unwrap();
        let token = guard.fencing_token();
        assert!(Some(token) > last, "{token:?} after {last:?}");
        last = Some(token);
        guard.release().await.unwrap();
    }
    assert_eq!(cli.keys("lock:*").await, [""; 0]);
}
