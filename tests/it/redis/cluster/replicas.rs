//! `?replicas=1` in a cluster: a lock is granted only if the replica of the slot's master has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lockattr::Error;
use tokio::task::{JoinSet, yield_now};

use super::*;

fn once() -> LockOptions {
    LockOptions::new().retry(0)
}

/// Whether a request was executed, and no replica has its effect.
fn is_unreplicated(error: &Error) -> bool {
    let Error::Store { source, .. } = error else { return false };
    source.to_string().starts_with("0 of the 1 replicas")
}

#[tokio::test]
async fn a_shard_without_its_replica_grants_nothing_and_the_others_do() {
    let cluster = Cluster::start().await;
    let manager = LockManager::connect(cluster.url_with("replicas=1")).await.unwrap();
    let quick = quick_manager(&cluster, "replicas=1");
    let slot = slot_of(&cluster, "a");
    let other = keys_beside(&cluster, "a", false, 1).await.remove(0);
    acquire(&manager, "a").await.release().await.unwrap();
    let replica = cluster.replica_of(slot).await.unwrap();
    replica.stop_signal();
    for keys in [vec!["a"], vec!["a", &*other], vec![&*other, "a"]] {
        let refused = async || {
            let error = quick.acquire_all(keys.iter().copied(), once()).await.unwrap_err();
            is_unreplicated(&error)
        };
        eventually("the error names the replicas", refused).await;
        assert_nothing_left(&cluster).await;
    }
    acquire(&manager, &other).await.release().await.unwrap();
    replica.continue_signal();
    cluster.settled().await;
    let guard = acquire(&manager, "a").await;
    assert!(replica.cli().await.keys("lock:a").await.len() == 1, "granted, and not there");
    guard.release().await.unwrap();
    drop((manager, quick));
    assert_no_trace(&cluster).await;
}

/// Halfway through a migration, the lock is at its new node and the slot is not: `ASK`, and the
/// replica of the new node counts.
#[tokio::test]
async fn a_lease_whose_slot_migrates_counts_with_the_replica_of_the_new_node() {
    let cluster = Cluster::start().await;
    let manager = quick_manager(&cluster, "replicas=1");
    let (slot, there) = (slot_of(&cluster, "a"), another_master(&cluster, "a").await);
    let replica = cluster.replica_of((slot + 8192) % 16384).await.unwrap();
    let holder = acquire(&manager, "a").await;
    let from = cluster.begin_migration(slot, there).await;
    // Only the lock moves; the counter stays behind for now.
    let port = there.addr().rsplit_once(':').unwrap().1.to_owned();
    let words = ["MIGRATE", "127.0.0.1", &port, "lock:a", "0", "5000"];
    from.cli().await.query::<()>(&words).await;
    eventually("renewed there", async || holder.extend(LONGER).await.is_ok()).await;
    replica.stop_signal();
    let refused = async || {
        let error = holder.extend(LONGER * 2).await.expect_err("renewed without the replica");
        is_unreplicated(&error)
    };
    eventually("the error names the replicas", refused).await;
    assert!(holder.ensure_held().is_ok(), "it is unknown, and no loss");
    replica.continue_signal();
    cluster.move_keys(slot, from, there).await;
    cluster.end_migration(slot, from, there).await;
    drop(holder);
    drop((acquire(&manager, "a").await, manager));
    assert_no_trace(&cluster).await;
}

/// The promise: each acquisition that was answered before its master was killed is at the new
/// master. Counted over a failover of each master, with at least 35 acquisitions each. In all but
/// the first, the replica is cut off for a tenth of a second before, while acquisitions go on.
#[tokio::test]
async fn no_lock_is_lost_when_a_master_is_killed_right_after_the_acquire() {
    let cluster = Cluster::start().await;
    for shard in 0..3 {
        let here = |prefix: String| {
            let keys = (0..).map(move |number| format!("{prefix}-{number}"));
            keys.filter(|key| shard_of(&cluster, key) == shard)
        };
        let one = here("one".to_owned()).next().unwrap();
        let url = cluster.url_with("replicas=1&connections=4");
        let manager = LockManager::connect(url).await.unwrap();
        let (count, over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let mut tasks = JoinSet::new();
        for task in 0..8 {
            let (manager, count, over) = (manager.clone(), count.clone(), over.clone());
            // More than the time allows.
            let keys: Vec<_> = here(format!("{shard}-{task}")).take(10_000).collect();
            tasks.spawn(async move {
                let mut held = Vec::new();
                for key in keys {
                    let acquired = manager.acquire(&key, once()).await;
                    let (Ok(guard), false) = (acquired, over.load(Ordering::SeqCst)) else { break };
                    held.push((key, guard));
                    count.fetch_add(1, Ordering::SeqCst);
                }
                held
            });
        }
        let slot = slot_of(&cluster, &one);
        let (old, replica) =
            (cluster.master_of(slot).await, cluster.replica_of(slot).await.unwrap());
        while count.load(Ordering::SeqCst) < 35 {
            yield_now().await;
        }
        if shard > 0 {
            cut_off(old, replica).await;
        }
        over.store(true, Ordering::SeqCst);
        old.kill();
        if shard > 0 {
            replica.continue_signal();
        }
        let held: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
        cluster.failed_over(old).await;
        let there = cluster.master_of(slot).await.cli().await.keys("lock:*").await;
        for (key, guard) in &held {
            let granted = there.contains(&lock(key));
            assert!(granted, "`{key}` was granted, and is not at the new master");
            guard.ensure_held().unwrap();
        }
        assert!(held.len() >= 35, "{} acquisitions were answered", held.len());
        drop(held);
        old.revive().await;
        cluster.settled().await;
        assert_nothing_left(&cluster).await;
    }
    assert_no_trace(&cluster).await;
}
