//! Slots that move from node to node while their locks are held and waited for.

use super::*;

#[tokio::test]
async fn a_slot_that_migrates_keeps_its_lease() {
    let cluster = Cluster::start().await;
    let manager = manager(&cluster).await;
    let holder = acquire(&manager, "a").await;
    let (before, there) = (holder.fencing_token(), another_master(&cluster, "a").await);
    cluster.migrate_slot(slot_of(&cluster, "a"), there).await;
    holder.extend(LONGER).await.unwrap();
    assert!(there.cli().await.pttl("lock:a").await > 800_000, "it is renewed there");
    assert!(holder.ensure_held().is_ok());
    holder.release().await.unwrap();
    assert_eq!(there.cli().await.value("lock:a").await, None);
    let next = acquire(&manager, "a").await;
    assert!(next.fencing_token() > before, "the counter did not migrate");
    next.release().await.unwrap();
    drop(manager);
    assert_no_trace(&cluster).await;
}

/// Halfway through a migration, the lock is at its new node and the slot is not.
#[tokio::test]
async fn a_lease_is_renewed_while_its_slot_migrates() {
    let cluster = Cluster::start().await;
    let manager = manager(&cluster).await;
    let holder = acquire(&manager, "a").await;
    let (slot, there) = (slot_of(&cluster, "a"), another_master(&cluster, "a").await);
    let from = cluster.begin_migration(slot, there).await;
    holder.extend(LONGER).await.unwrap();
    assert!(from.cli().await.pttl("lock:a").await > 800_000, "it is renewed where it was");
    // Only the lock moves; the counter stays behind for now.
    let port = there.addr().rsplit_once(':').unwrap().1.to_owned();
    let words = ["MIGRATE", "127.0.0.1", &port, "lock:a", "0", "5000"];
    from.cli().await.query::<()>(&words).await;
    holder.extend(LONGER * 2).await.unwrap();
    // Nothing was executed, so the next request succeeds.
    let quick = quick_manager(&cluster, "");
    let refused = quick.try_acquire("a", LockOptions::new()).await;
    assert!(matches!(refused, Err(lockattr::Error::Store { .. })), "{refused:?}");
    cluster.move_keys(slot, from, there).await;
    cluster.end_migration(slot, from, there).await;
    assert!(there.cli().await.pttl("lock:a").await > 1_600_000, "it was renewed there");
    holder.release().await.unwrap();
    drop((manager, quick));
    assert_no_trace(&cluster).await;
}

/// The server ends the waiters' subscription, and no notification reaches them.
#[tokio::test]
async fn a_slot_that_migrates_keeps_its_waiters() {
    let cluster = Cluster::start().await;
    // Neither is the map read again for so long, nor does the first in the queue ask again.
    let url = cluster.url_with("heartbeat=1h&retry_delay=1h");
    let connect = async || LockManager::connect(&url).await.unwrap();
    let (first, second, third) = (connect().await, connect().await, connect().await);
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
        let guard = granted(waiter).await;
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
    let manager = manager(&cluster).await;
    let holder = acquire(&manager, "a").await;
    let (slot, there) = (slot_of(&cluster, "a"), another_master(&cluster, "a").await);
    let from = cluster.begin_migration(slot, there).await;
    let other = super::manager(&cluster).await;
    // One request, which is refused until the keys are together.
    let tries = tokio::spawn({
        let other = other.clone();
        async move { other.try_acquire("a", LockOptions::new()).await }
    });
    let cli = from.cli().await;
    let refused = async || {
        let errors: String = cli.query(&["INFO", "errorstats"]).await;
        errors.contains("TRYAGAIN")
    };
    eventually("the old node refuses", refused).await;
    let release = tokio::spawn(holder.release());
    let cloned = manager.clone();
    let asks = tokio::spawn(async move { acquire(&cloned, "a").await });
    cluster.move_keys(slot, from, there).await;
    cluster.end_migration(slot, from, there).await;
    in_time(release).await.unwrap().unwrap();
    // It may come before or after the release.
    if let Some(guard) = in_time(tries).await.unwrap().expect("answered once the keys are there") {
        guard.release().await.unwrap();
    }
    granted(asks).await.release().await.unwrap();
    drop((manager, other));
    assert_no_trace(&cluster).await;
}

/// A key with an empty hash tag is hashed whole, in Rust, in Lua and by the server.
#[tokio::test]
async fn an_empty_hash_tag_is_none() {
    let cluster = Cluster::shared().await;
    let (manager, other) = (manager(cluster).await, manager(cluster).await);
    for key in ["{}", "{}a", "a{}{b}", "{{c}}", "a{b", "}{", "{d}e"] {
        let holder = acquire(&manager, key).await;
        assert!(value(cluster, key).await.is_some(), "{key}");
        assert!(other.try_acquire(key, LockOptions::new()).await.unwrap().is_none());
        let next = tokio::spawn({
            let other = other.clone();
            async move { acquire(&other, key).await }
        });
        let queued = async || {
            let held = manager.held_locks().await.unwrap();
            held.iter().any(|held| held.key == key && held.waiting == 1)
        };
        eventually("queued", queued).await;
        holder.release().await.unwrap();
        granted(next).await.release().await.unwrap();
        assert_eq!(value(cluster, key).await, None, "{key}");
    }
}
