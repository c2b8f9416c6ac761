//! `?replicas=1`: a lock is granted only if a replica has it.

use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use lockattr::{Error, Lease, LockGuard, LockManager, LockOptions, LostReason};
use lockattr_tests::{Cli, RedisServer, assert_nothing_left, eventually, in_time, skip};
use tokio::time::Instant;

const LONG: Duration = Duration::from_secs(600);

struct World {
    master: RedisServer,
    replica: RedisServer,
    cli: Cli,
    /// With `replicas=1`. It waits half a minute for a replica that hangs.
    manager: LockManager,
}

async fn world() -> World {
    let master = RedisServer::start().await;
    let replica = RedisServer::builder().replica_of(&master).start().await;
    replica.linked().await;
    let cli = master.cli().await;
    // The replica counts once it has answered, which may take a second.
    cli.query::<()>(&["SET", "lockattr:test:fence", "replicated"]).await;
    let counted = async || cli.query::<usize>(&["WAIT", "1", "1000"]).await == 1;
    eventually("the replica counts", counted).await;
    cli.reset_stats().await;
    let manager = LockManager::connect(master.url_with("replicas=1")).await.unwrap();
    World { cli, master, replica, manager }
}

impl World {
    /// Another one, which waits a second for a replica. What it acquires is requested until it is granted.
    fn quick_manager(&self) -> LockManager {
        let url = self.master.url_with("replicas=1&response_timeout=2s");
        LockManager::builder().url(url).build().unwrap()
    }

    async fn on_the_replica(&self, key: &str) -> Option<String> {
        self.replica.cli().await.value(key).await
    }

    async fn nothing_left(self) {
        assert_nothing_left(&self.master).await;
        self.replica.linked().await;
        assert_nothing_left(&self.replica).await;
    }
}

fn once() -> LockOptions {
    LockOptions::new().retry(0).ttl(LONG)
}

/// Checked for every acquisition, at the moment it is answered.
#[tokio::test]
async fn what_is_granted_is_on_the_replica() {
    let world = world().await;
    let look = world.replica.cli().await;
    for _ in 0..50 {
        let guard = world.manager.acquire("a", once()).await.unwrap();
        assert!(look.value("lock:a").await.is_some(), "granted, but not there");
        guard.release().await.unwrap();
    }
    world.nothing_left().await;
}

/// Where commands are pipelined, the client library does not load scripts that a server forgot.
#[tokio::test]
async fn a_server_that_forgot_the_scripts_is_sent_them_again() {
    let world = world().await;
    let guard = world.manager.acquire("a", once()).await.unwrap();
    world.cli.script_flush().await;
    guard.extend(LONG * 2).await.unwrap();
    world.cli.script_flush().await;
    world.manager.acquire("b", once()).await.unwrap().release().await.unwrap();
    guard.release().await.unwrap();
    world.nothing_left().await;
}

#[tokio::test]
async fn without_the_replica_nothing_is_granted_and_nothing_stays_locked() {
    let world = world().await;
    world.replica.stop_signal();
    let quick = world.quick_manager();
    let refused = async || match quick.acquire("a", once()).await {
        Ok(_) => panic!("granted without the replica"),
        Err(Error::Store { source, .. }) => {
            let text = source.to_string();
            text.starts_with("0 of the 1 replicas") && text.contains("1s")
        }
        // Its own last attempt, which is being undone.
        Err(_) => false,
    };
    eventually("the error names the replicas", refused).await;
    assert_nothing_left(&world.master).await;

    // Without the option: granted, on one server only.
    let alone = LockManager::connect(world.master.url()).await.unwrap();
    alone.acquire("a", once()).await.unwrap().release().await.unwrap();

    world.replica.continue_signal();
    let guard = world.manager.acquire("a", LockOptions::new()).await.unwrap();
    assert!(world.on_the_replica("lock:a").await.is_some());
    guard.release().await.unwrap();
    world.nothing_left().await;
}

/// A renewal that no replica has is unknown: neither a renewal, nor a loss.
#[tokio::test]
async fn without_the_replica_a_lease_is_held_until_its_deadline_and_no_longer() {
    let world = world().await;
    let quick = world.quick_manager();
    let started = Instant::now();
    let held = quick.acquire("a", LockOptions::new().ttl(LONG)).await.unwrap();
    world.replica.stop_signal();
    skip(LONG * 2 / 5);
    let waits = async || world.cli.info("blocked_clients").await != "0";
    eventually("a renewal waits for the replica", waits).await;
    eventually("it has its reply", async || !waits().await).await;
    // By the same connections, after that reply.
    eventually("a later request is answered", async || quick.holder("a").await.is_ok()).await;
    assert!(held.remaining() < LONG * 3 / 5, "renewed");
    held.ensure_held().expect("unknown, not lost");
    skip(LONG * 3 / 5);
    in_time(held.lost()).await;
    let after = started.elapsed();
    assert!(after >= LONG * 98 / 100, "lost before its deadline: {after:?}");
    let Err(Error::Lost { reason, .. }) = held.ensure_held() else { panic!("it is lost") };
    assert_eq!(reason, LostReason::Expired);
    assert!(held.release().await.is_err());
    world.replica.continue_signal();
    world.nothing_left().await;
}

#[tokio::test]
async fn a_lease_outlives_a_replica_that_is_away_for_less_than_its_ttl() {
    let world = world().await;
    let ttl = Duration::from_secs(20);
    let held = world.manager.acquire("a", LockOptions::new().ttl(ttl)).await.unwrap();
    world.replica.stop_signal();
    let sent = async || world.cli.info("blocked_clients").await == "1";
    eventually("a renewal waits for the replica", sent).await;
    let end = || Instant::now() + held.remaining();
    let before = end();
    world.replica.continue_signal();
    let renewed = async || end() > before + Duration::from_secs(1);
    eventually("it is renewed", renewed).await;
    held.ensure_held().unwrap();
    held.release().await.unwrap();
    world.nothing_left().await;
}

/// A release grants the lock to the next waiter, and the replica need not have that grant.
#[tokio::test]
async fn a_grant_by_the_queue_counts_only_with_the_replica() {
    let world = world().await;
    let there = LockManager::connect(world.master.url()).await.unwrap();
    let held = there.acquire("a", once()).await.unwrap();
    let quick = world.quick_manager();
    let waiter = tokio::spawn(async move { quick.acquire("a", LockOptions::new()).await });
    eventually("queued", async || {
        world.cli.query::<u64>(&["ZCARD", "lockattr:line-of:{lock:a}"]).await == 1
    })
    .await;
    world.replica.stop_signal();
    let before = world.cli.value("lock:a").await;
    held.release().await.unwrap();
    let handed = async || world.cli.value("lock:a").await.is_some_and(|it| Some(it) != before);
    eventually("the master has granted it", handed).await;
    // For as long as several attempts take.
    eventually("it sends WAIT", async || {
        world.cli.commandstats().await.get("wait").is_some_and(|waits| *waits >= 3)
    })
    .await;
    assert!(!waiter.is_finished(), "it holds what only the master has");
    world.replica.continue_signal();
    let granted: LockGuard = in_time(waiter).await.unwrap().unwrap();
    assert!(world.on_the_replica("lock:a").await.is_some());
    drop(granted);
    world.nothing_left().await;
}

/// Renewals have a connection of their own, which a release that shortens a lease must not
/// overtake.
#[tokio::test]
async fn a_pending_renewal_does_not_lengthen_a_lease_that_a_release_has_shortened() {
    let world = world().await;
    let stays = Duration::from_secs(3);
    let options = LockOptions::new().ttl(LONG).hold_at_least(stays);
    let began = Instant::now();
    let held = world.manager.acquire("a", options).await.unwrap();
    let other = world.manager.acquire("b", once()).await.unwrap();
    world.replica.stop_signal();
    // The server keeps the second batch until the first has waited for its replica.
    let (lease, others) = (Lease::clone(&held), Lease::clone(&other));
    let (mut first, mut second) = (pin!(others.extend(LONG)), pin!(lease.extend(LONG)));
    assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
    eventually("the first waits", async || world.cli.info("blocked_clients").await == "1").await;
    let mut released = pin!(held.release());
    // On the other connection, the server executes in this order what it gets.
    tokio::select! {
        biased;
        early = &mut released => panic!("{early:?}"),
        holder = world.manager.holder("b") => drop(holder.unwrap()),
    }
    world.replica.continue_signal();
    let (first, second, released) = tokio::join!(first, second, released);
    first.unwrap();
    // Its answer came when the lock was released.
    drop(second);
    released.unwrap();
    let left = world.cli.pttl("lock:a").await;
    assert!(left <= 3_000, "it stays locked for {left} ms");
    other.release().await.unwrap();
    let free = async || world.cli.value("lock:a").await.is_none();
    eventually("free when its time is over", free).await;
    assert!(began.elapsed() >= stays);
    world.nothing_left().await;
}
