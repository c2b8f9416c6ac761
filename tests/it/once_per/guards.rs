//! Guards, plain functions and stores: where a key cannot be done, and where it must not be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use lockattr::distributed_lock;

use super::*;
use crate::support::Unqueued;

/// Red without: each of the checks in `release_done`.
#[tokio::test(start_paused = true)]
async fn a_guard_whose_key_cannot_be_done_is_refused_and_releases_its_lock() {
    let locks = TestLocks::new();
    let manager = locks.manager();
    let several = manager.acquire_all(["a", "b"], options());
    let shared = manager.acquire("c", options().mode(Mode::Shared));
    let refused = [
        several.await.unwrap().release_done(HOUR).await,
        shared.await.unwrap().release_done(HOUR).await,
        manager.acquire("d", options()).await.unwrap().release_done(Duration::ZERO).await,
        manager.acquire("e", options()).await.unwrap().release_done(367 * 24 * HOUR).await,
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::InvalidOptions(_))), "{refused:?}");
    }
    locks.assert_nothing_left().await;

    // The outer call goes on.
    let outer = manager.acquire("f", options()).await.unwrap();
    let nested = outer
        .scope(async { manager.acquire("f", options()).await.unwrap().release_done(HOUR).await });
    let nested = nested.await;
    assert!(matches!(nested, Err(Error::InvalidOptions(_))), "{nested:?}");
    outer.release().await.unwrap();
    locks.assert_nothing_left().await;
}

/// The store has the lock a moment longer, and would mark it. But the holder may not rely on that moment.
///
/// Red without: the check of the lease in `release_done`.
#[tokio::test(start_paused = true)]
async fn a_guard_whose_lease_has_ended_by_its_clock_marks_nothing() {
    let locks = TestLocks::new();
    let guard = locks.manager().acquire("invoices", options().renew(false)).await.unwrap();
    sleep(9 * SECOND - SECOND / 20).await;
    assert!(locks.holder("invoices").is_some(), "its lease is over");
    let late = guard.release_done(HOUR).await;
    assert!(matches!(late, Err(Error::Lost { reason: LostReason::Expired, .. })), "{late:?}");
    locks.until_free("invoices").await;
}

/// Red without: `hold_at_least` in `release_done`.
#[tokio::test(start_paused = true)]
async fn a_lock_that_has_to_stay_held_for_longer_than_the_period_does() {
    let locks = TestLocks::new();
    let began = Instant::now();
    let longer = options().hold_at_least(60 * SECOND);
    let got = locks
        .manager()
        .with_lock_once_per("invoices", 20 * SECOND, longer, async |_| Ok::<_, Failed>(1));
    assert_eq!(got.await.unwrap(), Ok(1));
    locks.until_free("invoices").await;
    let held = began.elapsed();
    assert!(held >= 60 * SECOND && held < 61 * SECOND, "{held:?}");
}

#[distributed_lock(key = "cleanup", once_per = "22h", wait = "0s", manager = manager)]
fn cleanup(manager: &LockManager, runs: &AtomicU32) -> Result<u32, Error> {
    let _manager = manager;
    match runs.fetch_add(1, Ordering::Relaxed) {
        0 => Err(Error::NoManager),
        run => Ok(run),
    }
}

/// Red without: the output that decides in `blocking.rs`.
#[test]
fn a_plain_function_that_failed_leaves_the_key_open() {
    let manager = LockManager::connect_blocking("memory://").unwrap();
    let runs = AtomicU32::new(0);
    assert!(matches!(cleanup(&manager, &runs), Err(Error::NoManager)));
    assert_eq!(cleanup(&manager, &runs).unwrap(), 1);
    assert!(matches!(cleanup(&manager, &runs), Err(Error::Done { .. })));
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}

#[distributed_lock(key = "invoices", once_per = "22h")]
async fn invoices() -> Result<(), Error> {
    panic!("the body ran")
}

/// Red without: the check of the store in `check_once` or in `release_done`, or `check_once` before an annotated body.
#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_keep_a_key_done_refuses_before_the_body() {
    let store = Arc::new(Unqueued::default());
    let manager = LockManager::builder().store(store).build().unwrap();
    let body = async |_: &lockattr::Lease| -> Result<u32, Failed> { panic!("the body ran") };
    let got = manager.with_lock_once_per("invoices", HOUR, options(), body).await;
    assert!(matches!(got, Err(Error::InvalidOptions(_))), "{got:?}");
    let annotated = manager.scope(invoices()).await;
    assert!(matches!(annotated, Err(Error::InvalidOptions(_))), "{annotated:?}");
    let guard = manager.acquire("invoices", options()).await.unwrap();
    let guarded = guard.release_done(HOUR).await;
    assert!(matches!(guarded, Err(Error::InvalidOptions(_))), "{guarded:?}");
    let checked = manager.check_once_per(HOUR);
    assert!(matches!(checked, Err(Error::InvalidOptions(_))), "{checked:?}");
}
