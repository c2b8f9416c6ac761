//! The attribute on plain functions, and the blocking API of the manager.

mod inside_runtimes;
mod lifetime;
mod options;
mod over_redis;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use lockattr::{Error, FencingToken, LockManager, LockOptions, OnLost, distributed_lock};
use lockattr_tests::HUNG;

use crate::support::{Fate, Scripted};

const SECOND: Duration = Duration::from_secs(1);

fn manager() -> LockManager {
    LockManager::connect_blocking("memory://").unwrap()
}

#[distributed_lock(key = "product:<id>", manager = manager)]
fn deduct(manager: &LockManager, id: u64, stock: &mut u32) -> Result<u32, Error> {
    assert!(manager.holder_blocking(format!("product:{id}"))?.is_some());
    *stock -= 1;
    Ok(*stock)
}

#[test]
fn a_plain_function_runs_under_its_lock_in_a_program_without_a_runtime() {
    let manager = manager();
    let mut stock = 10;
    assert_eq!(deduct(&manager, 42, &mut stock).unwrap(), 9);
    assert_eq!(stock, 9);
    assert!(manager.holder_blocking("product:42").unwrap().is_none());
}

#[distributed_lock(key = "counter", manager = manager, wait = "60s")]
fn count(manager: &LockManager, inside: &AtomicUsize, total: &AtomicU32) -> Result<(), Error> {
    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two bodies at once");
    let before = total.load(Ordering::SeqCst);
    thread::yield_now();
    total.store(before + 1, Ordering::SeqCst);
    inside.fetch_sub(1, Ordering::SeqCst);
    Ok(())
}

/// Red without: the comparison in `Locks::acquire`.
#[test]
fn threads_take_turns() {
    let (manager, inside, total) = (manager(), AtomicUsize::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    count(&manager, &inside, &total).unwrap();
                }
            });
        }
    });
    assert_eq!(total.into_inner(), 200);
    assert!(manager.holder_blocking("counter").unwrap().is_none());
}

#[test]
fn a_waiter_that_gives_up_learns_the_holder() {
    let manager = manager();
    let options = LockOptions::new().function("stocktaking");
    let guard = manager.acquire_blocking("product:42", options).unwrap();
    let max_wait = LockOptions::new().wait(Duration::from_millis(20));
    match manager.acquire_blocking("product:42", max_wait) {
        Err(Error::Contended { key, holder: Some(holder), .. }) => {
            assert_eq!(key, "product:42");
            assert_eq!(holder.function.as_deref(), Some("stocktaking"));
        }
        other => panic!("{other:?}"),
    }
    assert!(manager.try_acquire_blocking("product:42", LockOptions::new()).unwrap().is_none());
    guard.release_blocking().unwrap();
    assert!(manager.try_acquire_blocking("product:42", LockOptions::new()).unwrap().is_some());
}

fn depth_and_token() -> (u32, FencingToken) {
    let lease = lockattr::current().expect("under a lock");
    (lease.depth(), lease.fencing_token())
}

#[distributed_lock(key = "stock")]
fn outer() -> Result<[(u32, FencingToken); 3], Error> {
    Ok([depth_and_token(), inner()?, depth_and_token()])
}

#[distributed_lock(key = "stock")]
fn inner() -> Result<(u32, FencingToken), Error> {
    Ok(depth_and_token())
}

#[test]
fn nested_plain_functions_enter_again_under_the_same_token() {
    let manager = manager();
    let [before, nested, after] = manager.scope_blocking(outer).unwrap();
    assert_eq!((before.0, nested.0, after.0), (1, 2, 1));
    assert!(before.1 == nested.1 && nested.1 == after.1);
    assert!(lockattr::current().is_none());
    assert!(manager.holder_blocking("stock").unwrap().is_none());
}

#[test]
fn of_several_keys_those_that_the_chain_holds_are_entered_again() {
    let manager = manager();
    let all = ["a", "b"];
    manager
        .with_lock_blocking("a", LockOptions::new(), |outer| {
            let both = manager.acquire_all_blocking(all, LockOptions::new()).unwrap();
            assert!(both.keys().eq(["b"]));
            both.scope_blocking(|| {
                let again = manager.acquire_all_blocking(all, LockOptions::new()).unwrap();
                assert_eq!(again.depth(), 2);
            });
            both.release_blocking().unwrap();
            assert!(outer.ensure_held().is_ok());
        })
        .unwrap();
    assert!(manager.holder_blocking("b").unwrap().is_none());
}

/// Returns once `done`, on a thread without a runtime.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "the real clock, on a thread without a runtime")]
fn wait_until(done: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !done() {
        assert!(began.elapsed() < HUNG);
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// Red without: a runtime of the manager's own, on which its watchdog runs.
#[test]
fn a_body_that_computes_for_longer_than_its_ttl_is_renewed_meanwhile() {
    let store = Scripted::new();
    let manager = store.manager();
    // The lease is renewed after five seconds, and would be kept if that took ten more.
    let options = LockOptions::new().ttl(15 * SECOND);
    let computes = |lease: &lockattr::Lease| {
        let token = lease.fencing_token();
        // The loop calls nothing of ours, as a long computation.
        wait_until(|| !store.calls().renewals.is_empty());
        lease.ensure_held().map(|()| token)
    };
    manager.with_lock_blocking("report", options, computes).unwrap().unwrap();
    assert!(manager.holder_blocking("report").unwrap().is_none());
}

/// Runs until its lease of 20 ms is over.
fn outlives(lease: &lockattr::Lease) -> &'static str {
    while lease.ensure_held().is_ok() {
        thread::yield_now();
    }
    "done"
}

#[test]
fn a_lease_lost_during_a_plain_body_is_reported_after_it() {
    let manager = manager();
    let short = LockOptions::new().ttl(Duration::from_millis(20)).renew(false);
    let lost = manager.with_lock_blocking("job", short.clone(), outlives);
    assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
    let ignored = short.clone().on_lost(OnLost::Ignore);
    assert_eq!(manager.with_lock_blocking("job", ignored, outlives).unwrap(), "done");
}

#[test]
fn a_plain_body_cannot_be_cancelled_and_says_so() {
    let manager = manager();
    let cancel = LockOptions::new().on_lost(OnLost::Cancel);
    let refused = manager.with_lock_blocking("job", cancel.clone(), |_| panic!("it ran"));
    let sentence = match refused {
        Err(Error::InvalidOptions(sentence)) => sentence,
        other => panic!("{other:?}"),
    };
    assert!(sentence.contains("`Error` or `Ignore`"), "{sentence}");
    // A guard has no body to cancel.
    assert!(manager.acquire_blocking("job", cancel).is_ok());
}

#[distributed_lock(key = "job")]
fn panics() -> Result<(), Error> {
    panic!("a bug in the body");
}

#[test]
fn a_panic_is_propagated_and_leaves_nothing_locked() {
    let manager = manager();
    let thrown = catch_unwind(AssertUnwindSafe(|| manager.scope_blocking(panics))).unwrap_err();
    assert_eq!(thrown.downcast_ref(), Some(&"a bug in the body"));
    assert!(manager.holder_blocking("job").unwrap().is_none());
    assert!(lockattr::current().is_none());
}

#[test]
fn a_store_that_panics_panics_here_and_the_next_call_is_served() {
    let store = Scripted::new();
    store.acquires(&[Fate::Panics, Fate::Answered]);
    let manager = store.manager();
    let call = || manager.acquire_blocking("job", LockOptions::new());
    let thrown = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
    assert_eq!(thrown.downcast_ref(), Some(&"a bug in the store"));
    drop(manager.acquire_blocking("job", LockOptions::new().wait(HUNG)).unwrap());
}

#[test]
fn a_manager_that_is_shut_down_grants_nothing_to_threads_either() {
    let manager = manager();
    manager.shutdown_blocking().unwrap();
    let refused = manager.acquire_blocking("job", LockOptions::new());
    assert!(matches!(refused, Err(Error::ShutDown { .. })), "{refused:?}");
}

#[test]
fn a_store_that_does_not_answer_fails_the_start() {
    let refused = LockManager::connect_blocking("redis://127.0.0.1:1/?connect_timeout=100ms");
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
}
