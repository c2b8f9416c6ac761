//! While another process waits, the number and duration of local hand-offs are limited.

use std::time::Duration;

use lockattr::LockManager;
use tokio::time::sleep;

use super::{MS, Order, SECOND, long_wait, on, settle};
use crate::support::Scripted;

/// Six callers of `here` wait behind a local holder, then one of `there`. Returns the order in
/// which they get in.
async fn order(here: LockManager, there: LockManager, time: Duration) -> String {
    let held = here.acquire("a", long_wait()).await.unwrap();
    let order = Order::default();
    for _ in 0..6 {
        order.spawn_holder(&here, "h", time).await;
    }
    order.spawn_holder(&there, "t", time).await;
    held.release().await.unwrap();
    sleep(10 * SECOND).await;
    assert_eq!(here.holder("a").await.unwrap(), None);
    order.names()
}

/// Red without: the count in `Head::next`.
#[tokio::test(start_paused = true)]
async fn hand_offs_are_bounded_by_their_count() {
    for (count, expected) in [(0, "thhhhhh"), (1, "hthhhhh"), (3, "hhhthhh"), (32, "hhhhhht")] {
        let store = Scripted::new();
        let here = on(&store).max_handoffs(count).max_handoff_time(3600 * SECOND).build().unwrap();
        assert_eq!(order(here, store.manager(), 5 * MS).await, expected, "{count} hand-overs");
    }
}

/// Red without: the time in `Head::next`.
#[tokio::test(start_paused = true)]
async fn hand_offs_are_bounded_by_their_time() {
    for (time, expected) in [(0, "thhhhhh"), (25, "hhhthhh"), (1_000, "hhhhhht")] {
        let store = Scripted::new();
        let here = on(&store).max_handoffs(100).max_handoff_time(time * MS).build().unwrap();
        assert_eq!(order(here, store.manager(), 10 * MS).await, expected, "{time} ms");
    }
}

/// Red without: starting the count only when the lock is contended.
#[tokio::test(start_paused = true)]
async fn without_another_process_there_is_no_bound() {
    let store = Scripted::new();
    let here = on(&store).max_handoffs(1).max_handoff_time(MS).build().unwrap();
    let held = here.acquire("a", long_wait()).await.unwrap();
    let order = Order::default();
    for _ in 0..100 {
        order.spawn_holder(&here, "h", 10 * MS).await;
    }
    held.release().await.unwrap();
    sleep(10 * SECOND).await;
    assert_eq!(order.names().len(), 100);
    assert_eq!(store.calls().acquires, 1);
}

/// Each process learns that the other waits, although the other asks just after the grant.
#[tokio::test(start_paused = true)]
async fn two_processes_take_turns() {
    let store = Scripted::new();
    let [here, there] = [(); 2].map(|()| on(&store).max_handoffs(2).build().unwrap());
    let held = here.acquire("a", long_wait()).await.unwrap();
    let order = Order::default();
    for _ in 0..7 {
        order.spawn_holder(&here, "h", MS).await;
        order.spawn_holder(&there, "t", MS).await;
    }
    held.release().await.unwrap();
    settle().await;
    sleep(10 * SECOND).await;
    // The holder hands the lock off twice; from then on each grant serves three holders.
    assert_eq!(order.names(), "hhttthhhttthht");
}

/// The third caller is in the store's wait queue before the second is granted the lock.
///
/// Red without: `contended` of a grant.
#[tokio::test(start_paused = true)]
async fn a_grant_reports_that_others_wait() {
    let store = Scripted::new();
    let [first, second, third] = [(); 3].map(|()| on(&store).max_handoffs(1).build().unwrap());
    let held = first.acquire("a", long_wait()).await.unwrap();
    let order = Order::default();
    for _ in 0..4 {
        order.spawn_holder(&second, "2", MS).await;
    }
    order.spawn_holder(&third, "3", MS).await;
    held.release().await.unwrap();
    sleep(10 * SECOND).await;
    assert_eq!(order.names(), "22322");
}
