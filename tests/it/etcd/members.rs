//! Members that die or are stopped, and what a hand-off costs the others.

use lockattr::LockGuard;
use lockattr_tests::{eventually, in_time};
use tokio::task::JoinHandle;

use super::*;

/// Detects a silent member soon. A member that is only slow is taken for silent too: then the store connects to
/// another, and asks again.
const QUICK: &str = "heartbeat=500ms&response_timeout=1s&connect_timeout=1s";

type Waiter = JoinHandle<Result<LockGuard, lockattr::Error>>;

/// Starts waiters with connections of their own, one after the other.
async fn waiters(url: &str, etcd: &Etcd, count: usize) -> Vec<Waiter> {
    let mut waiters = Vec::new();
    for nth in 0..count {
        let there = LockManager::builder().url(url).build().unwrap();
        waiters
            .push(tokio::spawn(async move { there.acquire("members", LockOptions::new()).await }));
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
        // A release that gets no answer is sent again in the background.
        drop(held);
        held = in_time(waiter).await.unwrap().unwrap();
        assert!(held.fencing_token() > last);
    }
}

/// Waits until another member serves the holder.
async fn is_held_at_another(held: &LockGuard) {
    eventually("held at another member", async || held.extend(TTL).await.is_ok()).await;
}

async fn nothing_is_left(etcd: &Etcd) {
    eventually("nothing is left", async || etcd.left().await.is_empty()).await;
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
    let waiters = waiters(&etcd.url_with(QUICK), &etcd, 3).await;
    etcd.kill(killed);
    etcd.leader().await;
    is_held_at_another(&held).await;
    all_get_in(held, waiters).await;
    nothing_is_left(&etcd).await;
}

#[tokio::test]
async fn stopping_the_leader_loses_no_lock_and_no_place_in_the_queue() {
    let etcd = Etcd::start().await;
    let here = LockManager::builder().url(etcd.url_with(QUICK)).build().unwrap();
    let held = here.acquire("members", LockOptions::new()).await.unwrap();
    let waiters = waiters(&etcd.url_with(QUICK), &etcd, 3).await;
    eventually("all watch", async || etcd.watches().await >= 7).await;
    let stopped = etcd.leader().await;
    etcd.stop_signal(stopped);
    etcd.leader().await;
    // Their sessions, and the entry before each waiter. By themselves they ask again after fifteen seconds, but do not
    // watch again.
    eventually("all watch at other members", async || etcd.watches().await >= 7).await;
    is_held_at_another(&held).await;
    all_get_in(held, waiters).await;
    etcd.continue_signal(stopped);
    etcd.leader().await;
    nothing_is_left(&etcd).await;
}

/// Compaction drops old revisions; a waiter watches new ones.
#[tokio::test]
async fn a_wait_queue_survives_a_compaction() {
    let etcd = Etcd::single().await;
    let here = manager(&etcd.url()).await;
    let held = here.acquire("members", LockOptions::new()).await.unwrap();
    let waiters = waiters(&etcd.url(), &etcd, 2).await;
    let status = etcd.ctl(&["put", "something", "else", "-w", "fields"]).await;
    let revision = status.lines().find_map(|line| line.strip_prefix("\"Revision\" : "));
    etcd.ctl(&["compaction", revision.expect("a revision")]).await;
    all_get_in(held, waiters).await;
    etcd.ctl(&["del", "something"]).await;
    nothing_is_left(&etcd).await;
}

/// Each waiter watches only the entry before its own.
#[tokio::test]
async fn a_release_wakes_one_waiter() {
    let etcd = Etcd::single().await;
    let here = manager(&etcd.url()).await;
    let held = here.acquire("members", LockOptions::new()).await.unwrap();
    let mut waiters = waiters(&etcd.url(), &etcd, 20).await;
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
