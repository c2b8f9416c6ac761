//! A lock that is taken from its holder by hand goes to the waiter. The wait never fails as if the
//! lock were still held, or as if the waiter blocked itself.

use lockattr::Error;

use super::*;
use lockattr_tests::in_time;

/// Another program deletes the holder's entry. The waiter asks after a `retry_delay`, or when its
/// place has to be kept; the lease that it learned of lasts longer than the test.
pub(super) async fn a_waiter_acquires_a_deleted_lock_within_its_retry_delay<T: Topology>(
    case: Case<'_, T>,
) {
    let (key, engine) = (case.key, case.engine);
    is_the_waiters(case, async |held, _| engine.steal(key, held).await).await;
}

/// The same with `force_release`. An operator has seen another holder first, which is gone by then.
///
/// Red without: the comparison of the ids in the store.
pub(super) async fn a_waiter_acquires_a_force_released_lock_within_its_retry_delay<T: Topology>(
    case: Case<'_, T>,
) {
    let (key, earlier) = (case.key, case.manager().await);
    let guard = earlier.acquire(key, LockOptions::new()).await.unwrap();
    let seen = earlier.holder(key).await.unwrap().expect("it is held");
    guard.release().await.unwrap();
    is_the_waiters(case, async |_, operator| {
        assert!(!operator.force_release(key, &seen).await.unwrap(), "it has left");
        let holder = operator.holder(key).await.unwrap().expect("its lock was not taken");
        assert_ne!(holder.id, seen.id);
        assert!(operator.force_release(key, &holder).await.unwrap(), "it was not held");
    })
    .await;
}

async fn is_the_waiters<T: Topology>(
    case: Case<'_, T>,
    take_away: impl AsyncFnOnce(&[String], &LockManager),
) {
    let (first, next) = (case.manager().await, case.manager().await);
    let holder = first.acquire(case.key, LockOptions::new()).await.unwrap();
    let held = case.left().await;
    let waiter = spawn_waiter(&case, &next, case.key, LockOptions::new()).await;
    take_away(&held, &first).await;
    let guard = in_time(waiter).await.unwrap().expect("the lock is free");
    let released = holder.release().await;
    assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");
    guard.ensure_held().expect("the late release frees no lock");
    guard.release().await.unwrap();
    case.nothing_left().await;
}
