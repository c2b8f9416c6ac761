//! A server without RESP3 has no push messages: notifications come over a second connection.

use std::time::Duration;

use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_tests::{
    Cli, Fault, Proxy, RedisServer, assert_nothing_left, eventually, in_time, with_query,
};
use tokio::task::JoinHandle;

/// So long that no caller gets in because a lease ended.
const LONG: Duration = Duration::from_secs(600);

struct World {
    server: RedisServer,
    cli: Cli,
    proxy: Proxy,
    there: LockManager,
    here: LockManager,
}

/// Two managers, of which `here` takes the server for an old one.
async fn world() -> World {
    world_with("").await
}

async fn world_with(query: &str) -> World {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let unknown = "ERR unknown command `HELLO`, with args beginning with: `3`";
    proxy.always("hello", Fault::Answer(unknown.into()));
    let url = with_query(&server.url_through(&proxy), query);
    let here = LockManager::connect(url).await.unwrap();
    let there = LockManager::connect(server.url()).await.unwrap();
    World { cli: server.cli().await, server, proxy, there, here }
}

impl World {
    async fn held_there(&self) -> LockGuard {
        self.there.acquire("a", LockOptions::new().ttl(LONG)).await.unwrap()
    }

    /// Waits here, in a task that is in the wait queue when this returns.
    async fn waits_here(&self) -> JoinHandle<Result<LockGuard, lockattr::Error>> {
        let here = self.here.clone();
        let waiter = tokio::spawn(async move {
            here.acquire("a", LockOptions::new().ttl(LONG).wait(LONG)).await
        });
        eventually("queued", async || {
            self.cli.query::<u64>(&["ZCARD", "lockattr:line-of:{lock:a}"]).await == 1
        })
        .await;
        waiter
    }
}

/// The lock, before the waiter would have asked again on its own.
async fn granted(waiter: JoinHandle<Result<LockGuard, lockattr::Error>>) -> LockGuard {
    in_time(waiter).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_waiter_is_notified_over_a_second_connection() {
    let world = world().await;
    let held = world.held_there().await;
    let waiter = world.waits_here().await;
    let clients = world.cli.query::<String>(&["CLIENT", "LIST", "TYPE", "PUBSUB"]).await;
    assert!(clients.lines().any(|client| client.contains("resp=2")), "{clients}");
    held.release().await.unwrap();
    let granted = granted(waiter).await;
    granted.ensure_held().unwrap();
    granted.release().await.unwrap();
    assert_nothing_left(&world.server).await;
}

#[tokio::test]
async fn a_grant_published_while_the_second_connection_was_cut_is_found() {
    let world = world().await;
    let held = world.held_there().await;
    let waiter = world.waits_here().await;
    // Of both managers; the waiter's connection comes back, asks again, and joins the queue again.
    world.cli.query::<u64>(&["CLIENT", "KILL", "TYPE", "PUBSUB"]).await;
    held.release().await.unwrap();
    granted(waiter).await.release().await.unwrap();
    assert_nothing_left(&world.server).await;
}

/// As after a failure of the network: no end of the connection is reported, and the other one works.
///
/// Red without: `until_silent` in `listener.rs`. The subscription then waits without end.
#[tokio::test]
async fn a_second_connection_that_fell_silent_is_replaced() {
    let world = world_with("heartbeat=100ms&response_timeout=1s").await;
    let held = world.held_there().await;
    world.proxy.next("subscribe", Fault::HalfOpen);
    let waiter = world.waits_here().await;
    let again = async || world.proxy.answered("subscribe") == 1;
    eventually("another connection subscribes", again).await;
    held.release().await.unwrap();
    granted(waiter).await.release().await.unwrap();
    assert_nothing_left(&world.server).await;
}
