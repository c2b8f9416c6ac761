//! `hold_at_least`: the lock stays taken for that time, whatever happens to its holder.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockattr::{Error, Lease, LockManager, LockOptions, Release};
use tokio::time::{Instant, sleep, sleep_until};

use super::{MS, SECOND, acquired_by, long_wait, on, settle, spawn_acquire};
use crate::support::{Fate, Scripted};

const LEAST: Duration = Duration::from_secs(5);

fn at_least() -> LockOptions {
    LockOptions::new().hold_at_least(LEAST).ttl(10 * SECOND)
}

/// Asserts that the lock is taken until just before `until` and free just after it.
async fn stays_taken_until(manager: &LockManager, until: Instant) {
    sleep_until(until - MS).await;
    assert!(manager.holder("a").await.unwrap().is_some(), "free too early");
    sleep_until(until + MS).await;
    assert_eq!(manager.holder("a").await.unwrap(), None, "locked for too long");
}

/// Red without: `ReleaseRequest::after` in `HeldLease::releasing`.
#[tokio::test(start_paused = true)]
async fn it_stays_locked_after_a_short_body_however_that_ends() {
    for how in ["release", "drop", "await", "background", "panic"] {
        let store = Scripted::new();
        let manager = store.manager();
        let began = Instant::now();
        match how {
            "release" => {
                let guard = manager.acquire("a", at_least()).await.unwrap();
                sleep(SECOND).await;
                guard.release().await.unwrap();
            }
            "drop" => {
                let guard = manager.acquire("a", at_least()).await.unwrap();
                sleep(SECOND).await;
                drop(guard);
            }
            "panic" => {
                let manager = manager.clone();
                let body = async |_: &Lease| {
                    sleep(SECOND).await;
                    panic!("a bug");
                };
                let task = async move { manager.with_lock("a", at_least(), body).await };
                assert!(tokio::spawn(task).await.unwrap_err().is_panic());
            }
            _ => {
                let release = if how == "await" { Release::Await } else { Release::Background };
                let options = at_least().release(release);
                let body = async |_: &Lease| sleep(SECOND).await;
                manager.with_lock("a", options, body).await.unwrap();
            }
        }
        assert_eq!(began.elapsed(), SECOND, "{how}: the caller need not wait");
        let nobody = manager.try_acquire("a", LockOptions::new()).await.unwrap();
        assert!(nobody.is_none(), "{how}: granted");
        stays_taken_until(&manager, began + LEAST).await;
        assert!(store.calls().renewals.is_empty(), "the lock is free");
    }
}

/// Red without: `ReleaseRequest::after` in `HeldLease::releasing`.
#[tokio::test(start_paused = true)]
async fn it_stays_locked_when_its_manager_is_gone() {
    let store = Scripted::new();
    let (manager, other) = (store.manager(), store.manager());
    let began = Instant::now();
    let guard = manager.acquire("a", at_least()).await.unwrap();
    drop(manager);
    drop(guard);
    stays_taken_until(&other, began + LEAST).await;
}

/// The store, or its answer, is missing when the lock is released: the end stays the same.
///
/// Red without: counting `hold_at_least` anew each time the release is sent.
#[tokio::test(start_paused = true)]
async fn a_release_that_is_retried_does_not_postpone_the_end() {
    for fate in [Fate::Refused, Fate::ReplyLost] {
        for background in [false, true] {
            let store = Scripted::new();
            let manager = store.manager();
            store.releases(&[fate, fate, fate, Fate::Answered]);
            let began = Instant::now();
            let options = at_least().ttl(60 * SECOND);
            if background {
                let options = options.release(Release::Background);
                manager.with_lock("a", options, async |_: &Lease| ()).await.unwrap();
            } else {
                drop(manager.acquire("a", options).await.unwrap());
            }
            stays_taken_until(&manager, began + LEAST).await;
            assert_eq!(store.calls().releases, [1; 4]);
        }
    }
}

/// Red without: an end that `ReleaseRequest::after` may put off.
#[tokio::test(start_paused = true)]
async fn it_may_stay_locked_for_longer_than_its_lease() {
    let store = Scripted::new();
    let manager = store.manager();
    let began = Instant::now();
    let guard = manager.acquire("a", at_least().ttl(SECOND)).await.unwrap();
    guard.release().await.unwrap();
    stays_taken_until(&manager, began + LEAST).await;
}

/// Red without: the end of `hold_at_least` in `HeldLease::stays`.
#[tokio::test(start_paused = true)]
async fn after_a_longer_body_it_is_free_at_once() {
    let store = Scripted::new();
    let manager = store.manager();
    let body = async |_: &Lease| sleep(2 * LEAST).await;
    manager.with_lock("a", at_least(), body).await.unwrap();
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// For a waiter of this process and for one of another: the lock is not handed off early.
///
/// Red without: the check of `stays` in `HeldLease::pass_on`; the notification of the waiters when
/// it ends.
#[tokio::test(start_paused = true)]
async fn the_next_in_the_queue_gets_in_right_then() {
    for elsewhere in [false, true] {
        let store = Scripted::new();
        let manager = store.manager();
        let next = if elsewhere { on(&store).build().unwrap() } else { manager.clone() };
        let began = Instant::now();
        let guard = manager.acquire("a", at_least().ttl(60 * SECOND)).await.unwrap();
        let first = spawn_acquire(&next, long_wait().ttl(60 * SECOND)).await;
        let second = spawn_acquire(&next, long_wait().ttl(60 * SECOND)).await;
        sleep(SECOND).await;
        let token = guard.fencing_token();
        guard.release().await.unwrap();
        let (first, at) = first.await.unwrap();
        let (first, waited) = (first.unwrap(), at - began);
        assert!(first.fencing_token() > token);
        assert!(waited >= LEAST && waited <= LEAST + 2 * MS, "elsewhere: {elsewhere}: {waited:?}");
        first.release().await.unwrap();
        acquired_by(second).await.0.release().await.unwrap();
        assert_eq!(manager.holder("a").await.unwrap(), None);
    }
}

/// Red without: the end of `hold_at_least` in `HeldLease::stays`.
#[tokio::test(start_paused = true)]
async fn after_a_longer_body_it_is_handed_off_at_once() {
    let store = Scripted::new();
    let manager = store.manager();
    let guard = manager.acquire("a", at_least()).await.unwrap();
    let next = spawn_acquire(&manager, long_wait().ttl(10 * SECOND)).await;
    sleep(2 * LEAST).await;
    let released = Instant::now();
    guard.release().await.unwrap();
    assert_eq!(next.await.unwrap().1, released);
    assert_eq!(store.calls().acquires, 1);
}

/// The time counts from when this holder got the lock, however it got it.
///
/// Red without: `held_until` of a hold that is handed off.
#[tokio::test(start_paused = true)]
async fn a_caller_that_is_handed_the_lock_has_its_own_hold_at_least() {
    let store = Scripted::new();
    let manager = store.manager();
    let guard = manager.acquire("a", LockOptions::new().ttl(10 * SECOND)).await.unwrap();
    let next = spawn_acquire(&manager, long_wait().ttl(10 * SECOND).hold_at_least(LEAST)).await;
    sleep(2 * SECOND).await;
    guard.release().await.unwrap();
    let (guard, at) = next.await.unwrap();
    guard.unwrap().release().await.unwrap();
    assert_eq!(store.calls().acquires, 1);
    stays_taken_until(&manager, at + LEAST).await;
}

/// A lock that stays taken is not cached for the next call.
///
/// Red without: the check of `stays` in `HeldLease::pass_on`.
#[tokio::test(start_paused = true)]
async fn a_lock_under_hold_at_least_does_not_linger() {
    let store = Scripted::new();
    let manager = on(&store).linger(3600 * SECOND).build().unwrap();
    let began = Instant::now();
    manager.acquire("a", at_least()).await.unwrap().release().await.unwrap();
    settle().await;
    assert!(manager.try_acquire("a", LockOptions::new()).await.unwrap().is_none());
    stays_taken_until(&manager, began + LEAST).await;
}

/// The lock is handed off inside the process to a call that is dropped before its next poll, so its
/// job never ran.
#[tokio::test(start_paused = true)]
async fn a_caller_that_is_handed_the_lock_and_never_begins_ignores_hold_at_least() {
    let store = Scripted::new();
    let manager = store.manager();
    for by_hand in [true, false] {
        let guard = manager.acquire("a", LockOptions::new().ttl(10 * SECOND)).await.unwrap();
        let options = long_wait().ttl(10 * SECOND).hold_at_least(3600 * SECOND);
        let ran = Arc::<AtomicU32>::default();
        let job = {
            let (ran, manager) = (ran.clone(), manager.clone());
            tokio::spawn(async move {
                if by_hand {
                    let _guard = manager.acquire("a", options).await;
                    ran.fetch_add(1, Ordering::SeqCst);
                } else {
                    let body = async |_: &Lease| ran.fetch_add(1, Ordering::SeqCst);
                    manager.with_lock("a", options, body).await.unwrap();
                }
            })
        };
        settle().await;
        // The lock is handed off, and the job is dropped before its next poll.
        drop(guard);
        job.abort();
        assert!(job.await.unwrap_err().is_cancelled());
        settle().await;
        assert_eq!(ran.load(Ordering::SeqCst), 0);
        let holder = manager.holder("a").await.unwrap();
        assert_eq!(holder, None, "locked for an hour by a job that never ran; by hand: {by_hand}");
    }
}

/// A duration that no clock can represent is refused.
#[tokio::test]
async fn no_hold_at_least_is_so_long_that_it_would_be_ignored() {
    let manager = Scripted::new().manager();
    for least in [Duration::MAX, Duration::from_secs(400 * 24 * 3600)] {
        let refused = manager.acquire("a", LockOptions::new().hold_at_least(least)).await;
        assert!(matches!(refused, Err(Error::InvalidOptions(_))), "{refused:?}");
    }
    let year = LockOptions::new().hold_at_least(Duration::from_secs(366 * 24 * 3600));
    manager.acquire("a", year).await.unwrap().release().await.unwrap();
    assert!(manager.holder("a").await.unwrap().is_some(), "it stays locked");
}
