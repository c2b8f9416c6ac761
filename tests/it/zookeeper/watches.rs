//! Which events wake which claims.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockattr::store::{Notification, Subscription};
use lockattr_tests::{for_store, in_time};
use tokio::time::timeout;

use super::*;

#[tokio::test]
async fn a_release_wakes_one_of_a_hundred() {
    let ensemble = ZooKeeper::single().await;
    let url = ensemble.url_apart();
    let store = ZookeeperStore::open(&for_store(&url)).unwrap();
    let subscriber = Arc::new(Subscriber::new(|_| {}));
    store.subscribe(&subscriber);
    let holder = claim(&subscriber, "herd");
    assert!(asks(&store, &holder).await);
    let mut waiters: Vec<(Arc<Claim>, Subscription)> = Vec::new();
    for _ in 0..100 {
        let waiter = claim(&subscriber, "herd");
        let expected = subscriber.subscribe(waiter.token());
        assert!(!asks(&store, &waiter).await);
        waiters.push((waiter, expected));
    }
    // Each waiter has one watch, each on another node.
    let watches = async || ensemble.sum("zk_watch_count").await;
    eventually("each watches", async || watches().await == 100).await;
    let fired = async || ensemble.sum("zk_sum_node_deleted_watch_count").await;
    let before = fired().await;
    assert!(releases(&store, &holder).await);
    let first = in_time(waiters[0].1.next()).await;
    assert!(matches!(first, Notification::Granted(_)));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(fired().await - before, 1, "watches fired");
    assert_eq!(watches().await, 99, "watches left");
    for (_, expected) in &waiters[1..] {
        assert!(timeout(Duration::ZERO, expected.next()).await.is_err(), "another was notified");
    }
    for (waiter, _) in waiters.iter().rev() {
        releases(&store, waiter).await;
    }
    eventually("all watches are removed", async || watches().await == 0).await;
    drop(store);
    nothing_is_left(&ensemble, &url).await;
}

/// Newer servers do not report changes of a node that the client may not read (CVE-2024-23944). The
/// change is noticed when the claim asks again, every 15 s.
#[tokio::test]
async fn an_entry_that_may_not_be_read_is_waited_for_too() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    let store = ZookeeperStore::open(&for_store(&url)).unwrap();
    let contended = Arc::new(AtomicBool::new(false));
    let notified = contended.clone();
    let subscriber = Arc::new(Subscriber::new(move |_| notified.store(true, Ordering::Release)));
    store.subscribe(&subscriber);
    let (holder, waiter) = (claim(&subscriber, "hidden"), claim(&subscriber, "hidden"));
    assert!(asks(&store, &holder).await);
    let entries = line(ensemble, &url, "hidden").await;
    ensemble.hide(&entries[0]).await;
    assert!(!asks(&store, &waiter).await);
    // The holder's own watch, which would be counted too, must fire first.
    let notified = async || contended.load(Ordering::Acquire);
    eventually("the holder is notified", notified).await;
    let watches = async || ensemble.watches(&chroot(&url)).await;
    eventually("it is watched", async || watches().await == 1).await;
    assert!(releases(&store, &holder).await);
    assert!(asks(&store, &waiter).await);
    assert!(releases(&store, &waiter).await);
    drop(store);
    nothing_is_left(ensemble, &url).await;
}

#[tokio::test]
async fn a_waiter_that_gives_up_removes_its_watch() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    let here = LockManager::connect(&url).await.unwrap();
    let there = LockManager::connect(&url).await.unwrap();
    let held = here.acquire("watched", LockOptions::new()).await.unwrap();
    let entry = line(ensemble, &url, "watched").await.remove(0);
    let watches = async |path: &str| ensemble.watches(path).await;
    for _ in 0..5 {
        let there = there.clone();
        let waits = tokio::spawn(async move { there.acquire("watched", LockOptions::new()).await });
        eventually("it watches the holder's entry", async || watches(&entry).await == 1).await;
        waits.abort();
        eventually("it watches no more", async || watches(&entry).await == 0).await;
    }
    let all = chroot(&url);
    eventually("no watch is left", async || watches(&all).await == 0).await;
    assert_eq!(line(ensemble, &url, "watched").await.len(), 1, "places left");
    held.release().await.unwrap();
    drop((here, there));
    nothing_is_left(ensemble, &url).await;
}
