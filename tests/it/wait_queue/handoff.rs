//! A lock is handed off from caller to caller inside a process, without a call to the store.

use std::collections::BTreeSet;

use lockattr::{Lease, LockOptions};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Order, SECOND, acquired_by, long_wait, settle, spawn_acquire};
use crate::support::{Calls, Scripted};

/// Red without: the hand-off in `HeldLease::pass_on`.
#[tokio::test(start_paused = true)]
async fn waiters_acquire_in_the_order_of_their_arrival() {
    let store = Scripted::new();
    let manager = store.manager();
    let held = manager.acquire("a", long_wait()).await.unwrap();
    let order = Order::default();
    for name in ["1", "2", "3", "4", "5"] {
        order.spawn_holder(&manager, name, SECOND).await;
    }
    assert_eq!(order.names(), "");
    held.release().await.unwrap();
    sleep(10 * SECOND).await;
    assert_eq!(order.names(), "12345");
    // The store sees one acquisition and one release.
    assert_eq!(
        store.calls(),
        Calls { acquires: 1, renewals: store.calls().renewals, releases: vec![1] }
    );
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// Also when the guard is only dropped.
///
/// Red without: the number that `HeldLease::hand_over` gives the next hold.
#[tokio::test(start_paused = true)]
async fn each_hold_has_a_greater_fencing_token() {
    let store = Scripted::new();
    let manager = store.manager();
    let mut held = manager.acquire("a", long_wait()).await.unwrap();
    for n in 0..10 {
        let waiter = spawn_acquire(&manager, long_wait()).await;
        let (before, lease) = (held.fencing_token(), Lease::clone(&held));
        if n % 2 == 0 {
            held.release().await.unwrap();
        } else {
            drop(held);
        }
        held = acquired_by(waiter).await.0;
        assert!(held.fencing_token() > before);
        // The lease of the previous holder has ended.
        assert!(lease.ensure_held().is_err());
        lease.lost().await;
        held.ensure_held().unwrap();
        assert_eq!(lease.fencing_token(), before);
    }
    let calls = store.calls();
    assert_eq!((calls.acquires, calls.releases.len()), (1, 0));
}

/// More hand-offs than the store reserves numbers for.
///
/// Red without: the end of the numbers in `FencingToken::handed_off`.
#[tokio::test(start_paused = true)]
async fn a_thousand_hand_offs_in_a_row_and_the_tokens_still_grow() {
    let store = Scripted::new();
    let manager = store.manager();
    let held = manager.acquire("a", long_wait()).await.unwrap();
    let mut tokens = vec![held.fencing_token()];
    let mut waiters = JoinSet::new();
    let (receiver, mut done) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..1_100 {
        let (manager, receiver) = (manager.clone(), receiver.clone());
        waiters.spawn(async move {
            let body = async |lease: &Lease| receiver.send(lease.fencing_token()).unwrap();
            manager.with_lock("a", long_wait(), body).await.unwrap();
        });
    }
    settle().await;
    drop((held, receiver));
    waiters.join_all().await;
    while let Some(token) = done.recv().await {
        tokens.push(token);
    }
    assert!(tokens.is_sorted(), "not in the order of the holds");
    assert_eq!(tokens.iter().collect::<BTreeSet<_>>().len(), 1_101, "one for two holds");
    // Each acquisition reserves 1,024 numbers.
    let calls = store.calls();
    assert_eq!((calls.acquires, calls.releases.len()), (2, 2));
}

/// Red without: the limit of half a lease in `HeldLease::fits`.
#[tokio::test(start_paused = true)]
async fn a_lease_of_which_less_than_half_is_left_is_not_handed_off() {
    for (held_for, acquires) in [(4, 1), (6, 2)] {
        let store = Scripted::new();
        let manager = store.manager();
        let fixed = LockOptions::new().ttl(10 * SECOND).renew(false);
        let held = manager.acquire("a", fixed).await.unwrap();
        let waiter = spawn_acquire(&manager, long_wait().ttl(10 * SECOND)).await;
        sleep(held_for * SECOND).await;
        held.release().await.unwrap();
        let (next, _) = waiter.await.unwrap();
        next.unwrap().ensure_held().unwrap();
        assert_eq!(store.calls().acquires, acquires, "held for {held_for} s");
    }
}

/// Red without: the comparison of the TTL, or that of `renew`, in `HeldLease::fits`, on either
/// side.
#[tokio::test(start_paused = true)]
async fn a_caller_that_needs_another_lease_is_not_handed_this_one() {
    let wishes = [
        (long_wait().ttl(60 * SECOND), 2),
        (long_wait().ttl(5 * SECOND), 2),
        (long_wait().renew(false).ttl(10 * SECOND), 2),
        (long_wait().ttl(10 * SECOND), 1),
    ];
    for (wish, acquires) in wishes {
        let store = Scripted::new();
        let manager = store.manager();
        let held = manager.acquire("a", LockOptions::new().ttl(10 * SECOND)).await.unwrap();
        let receiver = format!("{wish:?}");
        let waiter = spawn_acquire(&manager, wish.clone()).await;
        let behind = spawn_acquire(&manager, wish).await;
        held.release().await.unwrap();
        let next = acquired_by(waiter).await.0;
        next.ensure_held().unwrap();
        assert_eq!(store.calls().acquires, acquires, "{receiver}");
        next.release().await.unwrap();
        acquired_by(behind).await.0.release().await.unwrap();
        assert_eq!(manager.holder("a").await.unwrap(), None);
    }
}

/// Red without: starting a renewal in `Leases::hand_over` where the hold before had none.
#[tokio::test(start_paused = true)]
async fn a_lease_that_was_not_renewed_is_renewed_after_its_hand_off() {
    let ttl = 10 * SECOND;
    let fixed = LockOptions::new().ttl(ttl).renew(false);
    let capped = LockOptions::new().ttl(ttl).max_hold(15 * SECOND);
    for (options, held_for) in [(fixed, 2), (capped, 7)] {
        let store = Scripted::new();
        let manager = store.manager();
        let held = manager.acquire("a", options.clone()).await.unwrap();
        let waiter = spawn_acquire(&manager, long_wait().ttl(ttl)).await;
        sleep(held_for * SECOND).await;
        held.release().await.unwrap();
        let next = acquired_by(waiter).await.0;
        assert_eq!(store.calls().acquires, 1, "{options:?}");
        sleep(60 * SECOND).await;
        next.ensure_held().unwrap_or_else(|error| panic!("{error}, after {options:?}"));
        assert!(manager.holder("a").await.unwrap().is_some());
        next.release().await.unwrap();
    }
}

/// Each hold has the cap of its own options, counted from when it got the lock.
///
/// Red without: the terms that `Hold::handed_off` takes.
#[tokio::test(start_paused = true)]
async fn a_caller_that_is_handed_the_lock_has_its_own_max_hold() {
    let store = Scripted::new();
    let manager = store.manager();
    let ttl = 3 * SECOND;
    let held = manager.acquire("a", LockOptions::new().ttl(ttl)).await.unwrap();
    let capped = spawn_acquire(&manager, long_wait().ttl(ttl).max_hold(10 * SECOND)).await;
    let free = spawn_acquire(&manager, long_wait().ttl(ttl)).await;
    sleep(20 * SECOND).await;
    held.release().await.unwrap();
    let (capped, since) = capped.await.unwrap();
    let capped = capped.unwrap();
    timeout(60 * SECOND, capped.lost()).await.expect("it continues");
    let lasted = since.elapsed();
    assert!(lasted > 9 * SECOND && lasted <= 10 * SECOND, "{lasted:?}");
    drop(capped);
    let free = acquired_by(free).await.0;
    sleep(20 * SECOND).await;
    free.ensure_held().unwrap();
}
