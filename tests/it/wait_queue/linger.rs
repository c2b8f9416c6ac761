//! `linger`: a released lock stays cached in the process for the next call.

use std::sync::Arc;
use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions, LostReason, Mode};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

use super::{MS, SECOND, acquired_by, long_wait, on, settle, spawn_acquire};
use crate::support::Scripted;

fn lingering(store: &Arc<Scripted>, time: Duration) -> LockManager {
    on(store).linger(time).ttl(3 * SECOND).build().unwrap()
}

/// Takes the lock and releases it, by call or by drop.
async fn used(manager: &LockManager) -> u64 {
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    let token = guard.fencing_token().get();
    guard.release().await.unwrap();
    token
}

/// Red without: `HeldLease::keep`.
#[tokio::test(start_paused = true)]
async fn the_next_call_sends_no_request_to_the_store() {
    let store = Scripted::new();
    let manager = lingering(&store, 5 * SECOND);
    let mut last = used(&manager).await;
    for _ in 0..10 {
        sleep(SECOND).await;
        let token = used(&manager).await;
        assert!(token > last);
        last = token;
        drop(
            manager
                .try_acquire("a", LockOptions::new())
                .await
                .unwrap()
                .expect("cached by this manager"),
        );
    }
    let calls = store.calls();
    assert_eq!((calls.acquires, calls.releases.len()), (1, 0));
    // To other processes the lock is held.
    assert!(manager.holder("a").await.unwrap().is_some());
    assert!(store.manager().try_acquire("a", LockOptions::new()).await.unwrap().is_none());
}

/// Red without: `Kept::due`.
#[tokio::test(start_paused = true)]
async fn it_is_released_when_its_time_is_over() {
    let store = Scripted::new();
    let manager = lingering(&store, 5 * SECOND);
    used(&manager).await;
    sleep(5 * SECOND - 10 * MS).await;
    assert!(manager.holder("a").await.unwrap().is_some());
    sleep(20 * MS).await;
    assert_eq!(manager.holder("a").await.unwrap(), None);
    assert_eq!(store.calls().releases, [1]);
    used(&manager).await;
    assert_eq!(store.calls().acquires, 2);
}

/// A cached lock is renewed like any other.
#[tokio::test(start_paused = true)]
async fn it_is_kept_for_longer_than_its_ttl() {
    let store = Scripted::new();
    let manager = lingering(&store, 60 * SECOND);
    used(&manager).await;
    sleep(30 * SECOND).await;
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    guard.ensure_held().unwrap();
    assert_eq!(store.calls().acquires, 1);
    sleep(30 * SECOND).await;
    guard.release().await.unwrap();
}

/// Red without: giving up the cached lock when another process wants it.
#[tokio::test(start_paused = true)]
async fn another_process_that_waits_gets_it_at_once() {
    let store = Scripted::new();
    let (here, there) = (lingering(&store, 3600 * SECOND), store.manager());
    used(&here).await;
    let (guard, at) = spawn_acquire(&there, long_wait()).await.await.unwrap();
    assert!(at + 10 * MS > Instant::now(), "not at once");
    let guard = guard.unwrap();
    // It is not cached there, and it does not come back here early.
    let back = spawn_acquire(&here, long_wait()).await;
    guard.release().await.unwrap();
    acquired_by(back).await.0.release().await.unwrap();
    assert!(here.holder("a").await.unwrap().is_some(), "it lingers here again");
}

/// The other process waits before the lock is released.
///
/// Red without: the checks in `HeldLease::keep` whether the lock is contended.
#[tokio::test(start_paused = true)]
async fn a_lock_that_another_process_waits_for_is_not_cached() {
    let store = Scripted::new();
    let (here, there) = (lingering(&store, 3600 * SECOND), store.manager());
    let guard = here.acquire("a", LockOptions::new()).await.unwrap();
    let waiter = spawn_acquire(&there, long_wait()).await;
    let began = Instant::now();
    guard.release().await.unwrap();
    let (guard, at) = waiter.await.unwrap();
    assert_eq!(at, began);
    guard.unwrap().release().await.unwrap();
}

/// Red without: the check for a cached lock after the waiter at the head has left.
#[tokio::test(start_paused = true)]
async fn those_in_the_queue_here_are_served_before_it_is_kept() {
    let store = Scripted::new();
    let manager = lingering(&store, 3600 * SECOND);
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    let waiters =
        [spawn_acquire(&manager, long_wait()).await, spawn_acquire(&manager, long_wait()).await];
    guard.release().await.unwrap();
    for waiter in waiters {
        acquired_by(waiter).await.0.release().await.unwrap();
    }
    assert_eq!(store.calls().acquires, 1);
}

/// Red without: giving up cached locks when a manager is closed.
#[tokio::test(start_paused = true)]
async fn it_does_not_outlive_a_shutdown() {
    let store = Scripted::new();
    let manager = lingering(&store, 3600 * SECOND);
    used(&manager).await;
    let busy = manager.acquire("busy", LockOptions::new()).await.unwrap();
    let began = Instant::now();
    let shutdown = {
        let manager = manager.clone();
        tokio::spawn(async move { manager.shutdown().await })
    };
    settle().await;
    assert_eq!(manager.holder("a").await.unwrap(), None);
    // A lock that is released after the shutdown is not cached either.
    drop(busy);
    shutdown.await.unwrap();
    assert!(began.elapsed() < SECOND);
    assert_eq!(manager.holder("busy").await.unwrap(), None);
}

/// Red without: giving up cached locks when a manager is closed.
#[tokio::test(start_paused = true)]
async fn it_does_not_outlive_its_manager() {
    let store = Scripted::new();
    let manager = lingering(&store, 3600 * SECOND);
    used(&manager).await;
    drop(manager);
    settle().await;
    assert_eq!(store.manager().holder("a").await.unwrap(), None);
    assert_eq!(store.calls().releases, [1]);
}

/// Red without: `Queue::kept_by_nobody`.
#[test]
fn it_does_not_outlive_its_runtime() {
    let store = Scripted::new();
    let manager = lingering(&store, 3600 * SECOND);
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    runtime().block_on(async {
        let long = LockOptions::new().ttl(600 * SECOND);
        manager.acquire("a", long).await.unwrap().release().await.unwrap();
        assert!(manager.holder("a").await.unwrap().is_some());
    });
    assert_eq!(runtime().block_on(manager.holder("a")).unwrap(), None);
}

/// Red without: the check of the lease in `Owned::revive`.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_lost_while_it_lingers_is_acquired_again() {
    let store = Scripted::new();
    let manager = lingering(&store, 3600 * SECOND);
    let before = used(&manager).await;
    store.restart();
    // The renewal has seen the loss; most of the lease as last known is still left.
    sleep(SECOND + 100 * MS).await;
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    assert!(guard.fencing_token().get() > before);
    guard.ensure_held().unwrap();
    sleep(60 * SECOND).await;
    guard.ensure_held().unwrap();
    guard.release().await.unwrap();
}

/// The cached lease is taken over only if it has the same length and no other end.
///
/// Red without: either half of `lies_ready` in `LockGuard::revive`.
#[tokio::test(start_paused = true)]
async fn a_caller_that_reuses_it_has_its_own_ttl_and_its_own_max_hold() {
    let store = Scripted::new();
    let manager = lingering(&store, 3600 * SECOND);
    used(&manager).await;
    let longer = manager.acquire("a", LockOptions::new().ttl(4 * SECOND)).await.unwrap();
    sleep(SECOND + 100 * MS).await;
    assert!(longer.remaining() > 3 * SECOND, "renewed as before");
    longer.release().await.unwrap();
    assert_eq!(store.calls().acquires, 1);

    let store = Scripted::new();
    let manager = lingering(&store, 3600 * SECOND);
    used(&manager).await;
    let capped = manager.acquire("a", LockOptions::new().max_hold(10 * SECOND)).await.unwrap();
    assert_eq!(store.calls().acquires, 1);
    sleep(9 * SECOND).await;
    capped.ensure_held().unwrap();
    sleep(SECOND).await;
    let lost = capped.ensure_held().unwrap_err();
    assert!(matches!(lost, Error::Lost { reason: LostReason::MaxHold, .. }), "{lost}");
}

/// A caller of this process gets a lock that is only cached here, whatever its options are.
///
/// Red without: releasing a cached lock that does not fit, before the store is asked.
#[tokio::test(start_paused = true)]
async fn a_caller_that_needs_another_lease_is_not_blocked_by_a_lock_that_lingers() {
    let wishes = [
        LockOptions::new().renew(false),
        LockOptions::new().ttl(60 * SECOND),
        LockOptions::new().ttl(SECOND),
        LockOptions::new().mode(Mode::Shared),
        LockOptions::new().permits(3),
    ];
    for wish in wishes {
        let store = Scripted::new();
        let manager = lingering(&store, 3600 * SECOND);
        used(&manager).await;
        let guard = manager.try_acquire("a", wish.clone()).await.unwrap();
        guard.unwrap_or_else(|| panic!("cannot acquire: {wish:?}")).release().await.unwrap();
    }
    let store = Scripted::new();
    let manager = lingering(&store, 3600 * SECOND);
    used(&manager).await;
    let once = LockOptions::new().retry(0);
    manager.acquire_all(["b", "a"], once).await.expect("cannot acquire").release().await.unwrap();
}

/// Red without: releasing a cached lock that does not fit, before the store is asked.
#[tokio::test(start_paused = true)]
async fn thousands_of_calls_in_a_row_each_get_in_at_once() {
    let store = Scripted::new();
    let manager = lingering(&store, 3600 * SECOND);
    let mut last = 0;
    for n in 0..2_100 {
        let guard = manager.try_acquire("a", LockOptions::new()).await.unwrap();
        let guard = guard.unwrap_or_else(|| panic!("the {n}th cannot acquire"));
        assert!(guard.fencing_token().get() > last);
        last = guard.fencing_token().get();
        guard.release().await.unwrap();
    }
    assert_eq!(store.calls().acquires, 3);
}
