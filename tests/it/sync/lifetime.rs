//! When the manager's own thread begins and ends, and what it leaves behind.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockattr::{LockManager, LockOptions};
use lockattr_tests::HUNG;

use super::{SECOND, wait_until};
use crate::support::{Fate, Scripted};

/// Longer than any test, so a free lock was released and did not expire.
fn long() -> LockOptions {
    LockOptions::new().ttl(600 * SECOND)
}

/// Waits until only the test uses the store: the manager and its thread are gone.
#[track_caller]
fn assert_ends(store: &Arc<Scripted>) {
    wait_until(|| Arc::strong_count(store) == 1);
}

/// Drops `value`, and checks that the lock is free. A drop waits for releases for a second, so one that was interrupted
/// for so long proves nothing.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "the real clock, on a thread without a runtime")]
fn frees_when_dropped<T>(store: &Arc<Scripted>, key: &str, value: T) {
    let began = Instant::now();
    drop(value);
    let gave_up = began.elapsed() >= SECOND;
    assert!(gave_up || is_free(store, key), "{key}");
}

fn is_free(store: &Arc<Scripted>, key: &str) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(store.holder(key)).is_none()
}

#[test]
fn the_thread_ends_with_the_manager() {
    let store = Scripted::new();
    let manager = store.manager();
    let clone = manager.clone();
    manager.acquire_blocking("a", long()).unwrap().release_blocking().unwrap();
    drop(manager);
    clone.acquire_blocking("a", long()).unwrap().release_blocking().unwrap();
    drop(clone);
    assert_ends(&store);
}

/// Red without: the watchdog's task on that thread, which continues while a lock is held.
#[test]
fn a_guard_that_outlives_its_manager_is_renewed_and_released() {
    let store = Scripted::new();
    let manager = store.manager();
    // The lease is renewed after five seconds, and would be kept if that took ten more.
    let guard = manager.acquire_blocking("a", LockOptions::new().ttl(15 * SECOND)).unwrap();
    drop(manager);
    wait_until(|| !store.calls().renewals.is_empty());
    guard.ensure_held().unwrap();
    guard.release_blocking().unwrap();
    assert!(is_free(&store, "a"));
    assert_ends(&store);
}

/// The process may end right after the drop.
#[test]
fn a_guard_dropped_on_a_plain_thread_is_released_when_the_drop_returns() {
    let store = Scripted::new();
    store.releases(&[Fate::Slow(Duration::from_millis(50))]);
    let manager = store.manager();
    for n in 0..3 {
        let key = format!("k{n}");
        frees_when_dropped(&store, &key, manager.acquire_blocking(&key, long()).unwrap());
    }
}

#[test]
fn a_manager_dropped_on_a_plain_thread_waits_for_its_releases_in_the_background() {
    let store = Scripted::new();
    store.releases(&[Fate::Slow(Duration::from_millis(50))]);
    let manager = store.manager();
    let options = long().release(lockattr::Release::Background);
    manager.with_lock_blocking("a", options, |_| ()).unwrap();
    assert!(!is_free(&store, "a"), "it was not in the background");
    frees_when_dropped(&store, "a", manager);
}

/// Red without: the release in `Owned::drop` of the kept locks.
#[test]
fn a_lock_that_lingers_is_released_with_its_manager() {
    let store = Scripted::new();
    let manager = LockManager::builder().store(store.clone()).linger(600 * SECOND).build().unwrap();
    manager.acquire_blocking("a", long()).unwrap().release_blocking().unwrap();
    assert!(!is_free(&store, "a"), "it was not cached");
    frees_when_dropped(&store, "a", manager);
}

/// One second for all of them; it would be five minutes if each were waited for.
#[test]
#[expect(clippy::disallowed_methods, reason = "the real clock, on a thread without a runtime")]
fn a_store_that_is_gone_does_not_delay_drops_on_a_plain_thread_for_long() {
    let store = Scripted::new();
    let manager = store.manager();
    let guards: Vec<_> =
        (0..300).map(|n| manager.acquire_blocking(format!("k{n}"), long()).unwrap()).collect();
    store.releases(&[Fate::Refused]);
    let started = Instant::now();
    drop(guards);
    assert!(started.elapsed() < HUNG);
    assert!(!is_free(&store, "k99"));
    // The thread continues, and the next drop waits again.
    store.releases(&[Fate::Answered]);
    wait_until(|| is_free(&store, "k99"));
    drop(manager);
    assert_ends(&store);
}
