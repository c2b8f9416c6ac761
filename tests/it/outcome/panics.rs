//! Panics: the payload is passed on, and the lock is free at once.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::time::Duration;

use lockattr::{Error, Lease, LockManager, LockOptions, distributed_lock};
use lockattr_tests::eventually;
use tokio::runtime::Builder;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::SECOND;
use crate::support::Scripted;

/// A manager whose lease is far longer than the wait budget of a test.
fn manager() -> LockManager {
    LockManager::builder().url("memory://?ttl=1h").build().unwrap()
}

async fn free_at_once(manager: &LockManager) {
    let free = async || manager.holder("job").await.unwrap().is_none();
    eventually("freed after a panic", free).await;
}

async fn thrown<T: std::fmt::Debug>(task: JoinHandle<T>) -> Box<dyn Any + Send> {
    task.await.unwrap_err().into_panic()
}

fn bug() -> u32 {
    panic!("a bug in the body")
}

fn is_the_bug(thrown: &dyn Any) -> bool {
    thrown.downcast_ref() == Some(&"a bug in the body")
}

#[distributed_lock(key = "job", manager = &manager)]
async fn annotated(manager: LockManager) -> Result<u32, Error> {
    sleep(SECOND).await;
    Ok(bug())
}

#[distributed_lock(key = "job", manager = &manager, release = background)]
async fn in_background(manager: LockManager) -> Result<u32, Error> {
    sleep(SECOND).await;
    Ok(bug())
}

/// Locks the same key again in its body.
#[distributed_lock(key = "job", manager = &manager)]
async fn outer(manager: LockManager) -> Result<u32, Error> {
    annotated(manager.clone()).await
}

#[tokio::test(start_paused = true)]
async fn a_panicking_body_frees_its_lock_at_once_and_its_payload_is_kept() {
    let manager = manager();
    let plain = {
        let manager = manager.clone();
        async move { manager.with_lock("job", LockOptions::new(), async |_: &Lease| bug()).await }
    };
    let calls = [
        tokio::spawn(plain),
        tokio::spawn(annotated(manager.clone())),
        tokio::spawn(in_background(manager.clone())),
        tokio::spawn(outer(manager.clone())),
    ];
    // One call after the other: each acquires the lock only if the one before released it.
    for call in calls {
        assert!(is_the_bug(&*thrown(call).await));
    }
    free_at_once(&manager).await;
}

/// Checks any payload type, and a panic that is caught around the call.
#[test]
fn a_panic_that_is_caught_around_the_call_has_its_own_payload() {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let manager = manager();
    let body = async |_: &Lease| panic_any(vec![1_u8, 2, 3]);
    let call = manager.with_lock("job", LockOptions::new(), body);
    let caught = catch_unwind(AssertUnwindSafe(|| runtime.block_on(call)));
    let payload = caught.map(drop).unwrap_err().downcast::<Vec<u8>>().unwrap();
    assert_eq!(*payload, [1, 2, 3]);
    runtime.block_on(free_at_once(&manager));
}

/// A nested call that panics ends its turn. The outer hold continues, and its owner releases it
/// once.
#[tokio::test(start_paused = true)]
async fn a_nested_panic_that_is_caught_leaves_the_outer_call_holding() {
    let store = Scripted::new();
    let manager = store.manager();
    let body = async |lease: &Lease| {
        let nested = tokio::spawn(lockattr::inherit(annotated(manager.clone())));
        assert!(is_the_bug(&*thrown(nested).await));
        lease.ensure_held().unwrap();
        assert!(manager.holder("job").await.unwrap().is_some(), "a nested call released it");
        let next = LockOptions::new().wait(Duration::ZERO);
        manager.with_lock("job", next, async |inner: &Lease| inner.depth()).await
    };
    let depth = manager.with_lock("job", LockOptions::new(), body).await.unwrap();
    assert_eq!(depth.unwrap(), 2, "the turn was ended");
    assert_eq!(store.calls().releases, [1]);
    free_at_once(&manager).await;
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a bug in a destructor");
    }
}

#[distributed_lock(key = "job", manager = &manager)]
async fn with_a_bomb(manager: LockManager, time: Duration) -> Result<(), Error> {
    let _bomb = Bomb;
    sleep(time).await;
    Ok(())
}

fn is_the_bomb(thrown: &dyn Any) -> bool {
    thrown.downcast_ref() == Some(&"a bug in a destructor")
}

/// The body's locals are dropped at its end, with the call, or by a loss.
#[tokio::test(start_paused = true)]
async fn a_destructor_that_panics_in_the_body_frees_the_lock_too() {
    let manager = manager();
    let ends = tokio::spawn(with_a_bomb(manager.clone(), SECOND));
    assert!(is_the_bomb(&*thrown(ends).await));
    free_at_once(&manager).await;

    let aborted = tokio::spawn(with_a_bomb(manager.clone(), 600 * SECOND));
    sleep(SECOND).await;
    assert!(manager.holder("job").await.unwrap().is_some());
    aborted.abort();
    assert!(is_the_bomb(&*thrown(aborted).await));
    free_at_once(&manager).await;

    let cancelled = tokio::spawn(with_a_bomb(manager.clone(), 600 * SECOND));
    sleep(SECOND).await;
    let started = Instant::now();
    manager.shutdown().await;
    assert!(started.elapsed() < SECOND, "the shutdown waited for a body that is gone");
    assert!(is_the_bomb(&*thrown(cancelled).await));
    assert_eq!(manager.holder("job").await.unwrap(), None);
}
