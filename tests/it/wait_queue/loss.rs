//! Waiters behind a holder that loses the lock, panics, or ends with its runtime.

use std::sync::mpsc;

use lockattr::{Error, Lease, LockOptions, LostReason};
use lockattr_tests::{HUNG, eventually, in_time};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

use super::{SECOND, acquired_by, long_wait, settle, spawn_acquire};
use crate::support::{Fate, Scripted};

/// Red without: the check of the lease in `HeldLease::pass_on`.
#[tokio::test(start_paused = true)]
async fn waiters_behind_a_lost_lease_ask_the_store() {
    let store = Scripted::new();
    let manager = store.manager();
    let holder = {
        let manager = manager.clone();
        tokio::spawn(async move {
            let body = async |_: &Lease| sleep(3600 * SECOND).await;
            manager.with_lock("a", LockOptions::new().ttl(9 * SECOND), body).await
        })
    };
    settle().await;
    let waiters =
        [spawn_acquire(&manager, long_wait()).await, spawn_acquire(&manager, long_wait()).await];
    // The store loses all data; the next renewal, after a third of the lease, finds that out.
    store.restart();
    let began = Instant::now();
    let error = holder.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Lost { reason: LostReason::Taken, .. }), "{error:?}");
    let mut last = None;
    for waiter in waiters {
        let (guard, at) = waiter.await.unwrap();
        let guard = guard.unwrap();
        assert!(at - began <= 3 * SECOND, "{:?}", at - began);
        assert!(Some(guard.fencing_token()) > last);
        last = Some(guard.fencing_token());
        guard.release().await.unwrap();
    }
    // The first waiter asks the store, and hands its grant off to the second.
    assert_eq!(store.calls().acquires, 2);
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// The store does not answer, so the lease ends by the clock. A lapsed lease is not handed off.
///
/// Red without: the check of the lease in `HeldLease::pass_on`.
#[tokio::test(start_paused = true)]
async fn an_expired_lease_is_not_handed_off() {
    let store = Scripted::new();
    let manager = store.manager();
    let fixed = LockOptions::new().ttl(SECOND).renew(false);
    let held = manager.acquire("a", fixed).await.unwrap();
    let waiter = spawn_acquire(&manager, long_wait().ttl(SECOND)).await;
    sleep(5 * SECOND).await;
    let token = held.fencing_token();
    assert!(matches!(held.release().await, Err(Error::Lost { .. })));
    let next = acquired_by(waiter).await.0;
    assert!(next.fencing_token() > token);
    next.ensure_held().unwrap();
    assert_eq!(store.calls().acquires, 2);
}

/// Red without: the guard that is dropped during the panic.
#[tokio::test(start_paused = true)]
async fn a_holder_that_panics_hands_the_lock_off() {
    let store = Scripted::new();
    let manager = store.manager();
    let holder = {
        let manager = manager.clone();
        tokio::spawn(async move {
            let body = async |_: &Lease| {
                sleep(SECOND).await;
                panic!("a bug");
            };
            manager.with_lock("a", long_wait(), body).await
        })
    };
    settle().await;
    let waiter = spawn_acquire(&manager, long_wait()).await;
    assert!(holder.await.unwrap_err().is_panic());
    acquired_by(waiter).await.0.release().await.unwrap();
    let calls = store.calls();
    assert_eq!((calls.acquires, calls.releases), (1, vec![1]));
}

/// The manager retries a failed release later; meanwhile the next waiter asks for the lock.
///
/// Red without: joining the store's wait queue behind the release that is still pending.
#[tokio::test(start_paused = true)]
async fn waiters_behind_a_failed_release_wait_until_it_succeeds() {
    let store = Scripted::new();
    let manager = store.manager();
    store.releases(&[Fate::Refused, Fate::Refused, Fate::Answered]);
    let held = manager.acquire("a", LockOptions::new().ttl(600 * SECOND)).await.unwrap();
    // A TTL of another length, so that the waiter has to ask the store.
    let waiter = spawn_acquire(&manager, long_wait().ttl(60 * SECOND)).await;
    let began = Instant::now();
    assert!(matches!(held.release().await, Err(Error::Store { .. })));
    let (guard, at) = waiter.await.unwrap();
    guard.unwrap().release().await.unwrap();
    assert!(at - began < 10 * SECOND, "{:?}", at - began);
}

/// The holder ends with its runtime; waiters on another runtime go on.
///
/// Red without: the hand-off by a guard that is dropped.
#[test]
fn waiters_on_another_runtime_are_handed_the_lock_of_one_that_ends() {
    let runtime = || Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let store = Scripted::new();
    let manager = store.manager();
    let (ends, stays) = (runtime(), runtime());
    let (sender, receiver) = mpsc::channel();
    let long = || long_wait().ttl(600 * SECOND);
    let holder = manager.clone();
    ends.spawn(async move {
        let _held = holder.acquire("a", long()).await.unwrap();
        sender.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    receiver.recv_timeout(HUNG).unwrap();
    // One waiter that ends with the holder, and one behind it that does not.
    let started = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let ask = |runtime: &tokio::runtime::Runtime| {
        let (manager, started) = (manager.clone(), started.clone());
        let options = long();
        runtime.spawn(async move {
            let mut acquire = std::pin::pin!(manager.acquire("a", options));
            assert!(futures_util::future::poll_immediate(acquire.as_mut()).await.is_none());
            started.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            acquire.await
        })
    };
    let standing = |count| {
        let (started, stays) = (&started, &stays);
        let all = async move || started.load(std::sync::atomic::Ordering::SeqCst) == count;
        stays.block_on(eventually("queued", all));
    };
    let _gone = ask(&ends);
    standing(1);
    let next = ask(&stays);
    standing(2);
    drop(ends);
    stays.block_on(async {
        let guard = in_time(next).await;
        guard.unwrap().unwrap().release().await.unwrap();
        assert_eq!(manager.holder("a").await.unwrap(), None);
    });
    assert_eq!(store.calls().acquires, 1);
}

/// The store's connection ends, and with it the lock, before the caller has read its grant. The
/// caller asks again, as after any loss before the body begins.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_lost_before_its_caller_knows_is_acquired_again() {
    let store = Scripted::new();
    let (manager, other) = (store.manager(), store.manager());
    // The grant is read from a reply, or from a notification.
    for waits in [false, true] {
        let acquires = store.calls().acquires;
        let before =
            if waits { Some(other.acquire("a", long_wait()).await.unwrap()) } else { None };
        store.acquires(if waits { &[Fate::Answered] } else { &[Fate::Stolen, Fate::Answered] });
        let asked = spawn_acquire(&manager, long_wait()).await;
        if let Some(before) = before {
            before.release().await.unwrap();
            store.steal_from_last().await;
        }
        let guard = acquired_by(asked).await.0;
        guard.ensure_held().unwrap();
        assert!(other.try_acquire("a", long_wait()).await.unwrap().is_none());
        assert_eq!(store.calls().acquires - acquires, if waits { 4 } else { 3 });
        guard.release().await.unwrap();
        assert!(store.holder("a").await.is_none());
    }
}
