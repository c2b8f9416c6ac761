//! Slots that move from node to node while their locks are held and waited for.

use lockattr_tests::{RedisServer, in_time};
use tokio::time::{Instant, sleep};

use super::*;

/// Waits until this node has renewed the holder's lease.
async fn is_renewed_at(node: &RedisServer, key: &str) {
    let (cli, name) = (node.cli().await, lock(key));
    eventually("it ages", async || cli.pttl(&name).await < 2_700).await;
    eventually("it is renewed", async || cli.pttl(&name).await > 2_800).await;
}

#[tokio::test]
async fn a_slot_that_migrates_keeps_its_lease() {
    let cluster = Cluster::start().await;
    let manager = manager(&cluster, "ttl=3s").await;
    let holder = acquire(&manager, "a").await;
    let (before, there) = (holder.fencing_token(), another_master(&cluster, "a").await);
    cluster.migrate_slot(slot_of(&cluster, "a"), there).await;
    is_renewed_at(there, "a").await;
    is_renewed_at(there, "a").await;
    assert!(holder.ensure_held().is_ok());
    holder.release().await.unwrap();
    assert_eq!(there.cli().await.value("lock:a").await, None);
    let next = acquire(&manager, "a").await;
    assert!(next.fencing_token() > before, "the counter did not migrate");
    next.release().await.unwrap();
    drop(manager);
    assert_no_trace(&cluster).await;
}

/// Halfway through a migration, the lock is at its new node and the slot is not: for longer than a
/// TTL.
#[tokio::test]
async fn a_lease_is_renewed_while_its_slot_migrates() {
    let cluster = Cluster::start().await;
    let manager = manager(&cluster, "ttl=3s&response_timeout=300ms").await;
    let holder = acquire(&manager, "a").await;
    let (slot, there) = (slot_of(&cluster, "a"), another_master(&cluster, "a").await);
    let from = cluster.begin_migration(slot, there).await;
    is_renewed_at(from, "a").await;
    // Only the lock moves; the counter stays behind for now.
    let port = there.addr().rsplit_once(':').unwrap().1.to_owned();
    let words = ["MIGRATE", "127.0.0.1", &port, "lock:a", "0", "5000"];
    from.cli().await.query::<()>(&words).await;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(7) {
        assert!(holder.ensure_held().is_ok(), "lost after {:?}", began.elapsed());
        sleep(Duration::from_millis(100)).await;
    }
    // Nothing was executed, so the next request succeeds.
    let refused = manager.try_acquire("a", LockOptions::new()).await;
    assert!(matches!(refused, Err(lockattr::Error::Store { .. })), "{refused:?}");
    cluster.move_keys(slot, from, there).await;
    cluster.end_migration(slot, from, there).await;
    holder.release().await.unwrap();
    drop(manager);
    assert_no_trace(&cluster).await;
}

/// The server ends the waiters' subscription, and no notification reaches them.
#[tokio::test]
async fn a_slot_that_migrates_keeps_its_waiters() {
    let cluster = Cluster::start().await;
    // The map is not read again for so long.
    let query = format!("{LONG}&heartbeat=60s");
    let (first, second, third) = (
        manager(&cluster, &query).await,
        manager(&cluster, &query).await,
        manager(&cluster, &query).await,
    );
    let holder = acquire(&first, "a").await;
    let mut last = holder.fencing_token();
    let waiting = [waiter(&cluster, &second, "a", 1).await, waiter(&cluster, &third, "a", 2).await];
    let (slot, there) = (slot_of(&cluster, "a"), another_master(&cluster, "a").await);
    cluster.migrate_slot(slot, there).await;
    let listening = async || {
        let channels: Vec<String> = there.cli().await.query(&["PUBSUB", "SHARDCHANNELS"]).await;
        channels.len() >= 2
    };
    eventually("they listen there", listening).await;
    assert_eq!(queued(&cluster, "a").await, 2, "each still has its place");
    holder.release().await.unwrap();
    for waiter in waiting {
        let guard = granted(SOON, waiter).await;
        assert!(guard.fencing_token() > last);
        last = guard.fencing_token();
        guard.release().await.unwrap();
    }
    drop((first, second, third));
    assert_no_trace(&cluster).await;
}

/// Half of the keys are at one node, half at the other: no request can be served, and no waiter is
/// forgotten.
#[tokio::test]
async fn a_caller_that_acquires_while_the_keys_migrate_gets_in_afterwards() {
    let cluster = Cluster::start().await;
    let manager = manager(&cluster, LONG).await;
    let holder = acquire(&manager, "a").await;
    let (slot, there) = (slot_of(&cluster, "a"), another_master(&cluster, "a").await);
    let from = cluster.begin_migration(slot, there).await;
    let release = tokio::spawn(holder.release());
    let cloned = manager.clone();
    let asks = tokio::spawn(async move { acquire(&cloned, "a").await });
    sleep(Duration::from_millis(300)).await;
    assert!(!asks.is_finished());
    cluster.move_keys(slot, from, there).await;
    cluster.end_migration(slot, from, there).await;
    in_time(release).await.unwrap().unwrap();
    granted(SOON, asks).await.release().await.unwrap();
    drop(manager);
    assert_no_trace(&cluster).await;
}

/// A key with an empty hash tag is hashed whole, in Rust, in Lua and by the server.
#[tokio::test]
async fn an_empty_hash_tag_is_none() {
    let cluster = Cluster::shared().await;
    let manager = manager(cluster, LONG).await;
    for key in ["{}", "{}a", "a{}{b}", "{{c}}", "a{b", "}{", "{d}e"] {
        let holder = acquire(&manager, key).await;
        assert!(value(cluster, key).await.is_some(), "{key}");
        let other = super::manager(cluster, LONG).await;
        assert!(other.try_acquire(key, LockOptions::new()).await.unwrap().is_none());
        let next = tokio::spawn({
            let (other, key) = (other.clone(), key.to_owned());
            async move { acquire(&other, &key).await }
        });
        sleep(Duration::from_millis(50)).await;
        holder.release().await.unwrap();
        granted(SOON, next).await.release().await.unwrap();
        assert_eq!(value(cluster, key).await, None, "{key}");
    }
}
