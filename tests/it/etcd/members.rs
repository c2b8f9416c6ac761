//! Members that die or are stopped, and what a hand-off costs the others.

use std::time::Duration;

use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_tests::{Engine, Etcd, eventually, in_time};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::{long_wait, manager};

/// Detects a silent member soon.
const QUICK: &str = "heartbeat=500ms";

type Waiter = JoinHandle<Result<LockGuard, lockattr::Error>>;

/// Starts waiters with connections of their own, one after the other.
async fn waiters(etcd: &Etcd, count: usize) -> Vec<Waiter> {
    let mut waiters = Vec::new();
    for nth in 0..count {
        let there = manager(&etcd.url_with(QUICK)).await;
        waiters.push(tokio::spawn(async move { there.acquire("members", long_wait()).await }));
        let line = async || etcd.keys("lock:members/").await.len() == nth + 2;
        eventually("queued", line).await;
    }
    waiters
}

/// Checks that all waiters acquire the lock in their order, each with a greater fencing token.
async fn all_get_in(mut held: LockGuard, waiters: Vec<Waiter>) {
    for waiter in waiters {
        assert!(!waiter.is_finished(), "no second holder");
        held.ensure_held().expect("held all the time");
        let last = held.fencing_token();
        held.release().await.unwrap();
        held = in_time(waiter).await.unwrap().unwrap();
        assert!(held.fencing_token() > last);
    }
    held.release().await.unwrap();
}

#[tokio::test]
async fn killing_the_leader_loses_no_lock_and_no_place_in_the_queue() {
    let etcd = Etcd::start().await;
    let killed = etcd.leader().await;
    // This member is the first in the URL.
    let mut addrs = etcd.addrs();
    addrs.swap(0, killed);
    let here: LockManager = manager(&etcd.url_at(&addrs)).await;
    let held = here.acquire("members", LockOptions::new()).await.unwrap();
    let waiters = waiters(&etcd, 3).await;
    etcd.kill(killed);
    etcd.leader().await;
    let left = held.remaining();
    eventually("renewed at another member", async || held.remaining() > left).await;
    all_get_in(held, waiters).await;
    assert_eq!(etcd.left().await, [""; 0]);
}

#[tokio::test]
async fn stopping_the_leader_loses_no_lock_and_no_place_in_the_queue() {
    let etcd = Etcd::start().await;
    let here = manager(&etcd.url_with(QUICK)).await;
    let held = here.acquire("members", LockOptions::new()).await.unwrap();
    let waiters = waiters(&etcd, 3).await;
    let stopped = etcd.leader().await;
    etcd.stop_signal(stopped);
    etcd.leader().await;
    sleep(Duration::from_secs(3)).await;
    all_get_in(held, waiters).await;
    etcd.continue_signal(stopped);
    etcd.leader().await;
    assert_eq!(etcd.left().await, [""; 0]);
}

/// Compaction drops old revisions; a waiter watches new ones.
#[tokio::test]
async fn a_wait_queue_survives_a_compaction() {
    let etcd = Etcd::start().await;
    let here = manager(&etcd.url()).await;
    let held = here.acquire("members", LockOptions::new()).await.unwrap();
    let waiters = waiters(&etcd, 2).await;
    let status = etcd.ctl(&["put", "something", "else", "-w", "fields"]).await;
    let revision = status.lines().find_map(|line| line.strip_prefix("\"Revision\" : "));
    etcd.ctl(&["compaction", revision.expect("a revision")]).await;
    all_get_in(held, waiters).await;
    etcd.ctl(&["del", "something"]).await;
    assert_eq!(etcd.left().await, [""; 0]);
}

/// Each waiter watches only the entry before its own.
#[tokio::test]
async fn a_release_wakes_one_waiter() {
    let etcd = Etcd::start().await;
    let here = manager(&etcd.url()).await;
    let held = here.acquire("members", LockOptions::new()).await.unwrap();
    let mut waiters = waiters(&etcd, 20).await;
    let told = etcd.events().await;
    held.release().await.unwrap();
    let next = in_time(waiters.remove(0)).await.unwrap().unwrap();
    assert_eq!(etcd.events().await - told, 1, "events that watches were sent");
    drop(next);
    for waiter in waiters {
        in_time(waiter).await.unwrap().unwrap().release().await.unwrap();
    }
    assert_eq!(etcd.left().await, [""; 0]);
}
