//! Operator functions: listing the held locks, and a release by force with what it means for the
//! holder and the waiters. Paused clock.

use std::sync::Arc;
use std::time::Duration;

use lockattr::store::MemoryStore;
use lockattr::{Error, HolderId, LockManager, LockOptions, LostReason, Mode};
use tokio::time::{Instant, sleep};

use crate::support::Unqueued;
use lockattr_tests::force_release;

const SECOND: Duration = Duration::from_secs(1);

fn lease() -> LockOptions {
    LockOptions::new().ttl(3 * SECOND).wait(60 * SECOND)
}

/// Returns managers of different services over one store, each with its prefix.
fn managers<const N: usize>(prefixes: [&str; N]) -> [LockManager; N] {
    let store = Arc::new(MemoryStore::new());
    prefixes.map(|prefix| {
        let builder = LockManager::builder().store(store.clone()).prefix(prefix);
        builder.service(format!("of {prefix}")).build().unwrap()
    })
}

/// Red without: the prefix or the sort in `held_locks`.
#[tokio::test(start_paused = true)]
async fn what_is_held_under_the_managers_own_prefix_is_listed_by_key() {
    let [shop, other] = managers(["shop:", "other:"]);
    let mut guards = Vec::new();
    for key in ["c", "a", "b"] {
        guards.push(shop.acquire(key, lease()).await.unwrap());
    }
    guards.push(other.acquire("d", lease()).await.unwrap());
    let held = shop.held_locks().await.unwrap();
    assert!(held.iter().map(|held| held.key.as_str()).eq(["a", "b", "c"]));
    assert!(held.iter().all(|held| held.holder.service.as_deref() == Some("of shop:")));
    drop(guards);
    sleep(SECOND).await;
    assert_eq!(shop.held_locks().await.unwrap(), []);
    assert_eq!(other.held_locks().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn notes_of_waiters_for_deadlock_detection_are_not_listed_as_locks() {
    let store = Arc::new(MemoryStore::new());
    let builder = || LockManager::builder().store(store.clone()).prefix("").detect_deadlocks(true);
    let [here, there] = [(); 2].map(|()| builder().build().unwrap());
    let outer = here.acquire("outer", lease()).await.unwrap();
    let inner = there.acquire("inner", lease()).await.unwrap();
    let waits = outer.scope(here.acquire("inner", lease()));
    let looks = async {
        sleep(SECOND).await;
        assert!(there.holder("lockattr:waits:outer").await.unwrap().is_some(), "no note");
        let held = there.held_locks().await.unwrap();
        assert!(held.iter().map(|held| held.key.as_str()).eq(["inner", "outer"]), "{held:?}");
        inner.release().await.unwrap();
    };
    let (got, ()) = tokio::join!(waits, looks);
    drop((got.unwrap(), outer));
}

/// Red without: the hand-off in `Locks::force_release`, or the removal of the holders.
#[tokio::test(start_paused = true)]
async fn a_waiter_acquires_it_at_once_and_the_holder_learns_at_its_next_renewal() {
    let [here, there, operator] = managers(["", "", ""]);
    let hangs = here.acquire("nightly", lease()).await.unwrap();
    let waits = tokio::spawn({
        let there = there.clone();
        async move { there.acquire("nightly", lease()).await }
    });
    sleep(SECOND / 2).await;
    let held = operator.held_locks().await.unwrap();
    assert_eq!((held[0].waiting, held[0].fencing_token), (1, Some(hangs.fencing_token())));

    let forced = Instant::now();
    assert!(force_release(&operator, "nightly").await.unwrap());
    let next = waits.await.unwrap().unwrap();
    assert_eq!(forced.elapsed(), Duration::ZERO, "no caller waits for a lease to end");
    assert!(next.fencing_token() > hangs.fencing_token());
    hangs.lost().await;
    let lost = hangs.ensure_held();
    assert!(matches!(lost, Err(Error::Lost { reason: LostReason::Taken, .. })), "{lost:?}");
    assert!(forced.elapsed() <= SECOND, "a third of the TTL, and not all of it");

    // The first holder's release no longer affects any other process.
    let released = hangs.release().await;
    assert!(matches!(released, Err(Error::Lost { reason: LostReason::Taken, .. })), "{released:?}");
    sleep(10 * SECOND).await;
    next.ensure_held().unwrap();
    next.release().await.unwrap();
    assert!(!force_release(&operator, "nightly").await.unwrap(), "the lock is free");
}

/// Red without: the comparison of the ids in `Locks::force_release`.
#[tokio::test(start_paused = true)]
async fn a_lock_is_taken_from_the_holder_that_was_seen_and_not_from_the_next_one() {
    let [here, there, operator] = managers(["", "", ""]);
    let first = here.acquire("nightly", lease()).await.unwrap();
    let seen = operator.holder("nightly").await.unwrap().unwrap();
    let next = tokio::spawn(async move { there.acquire("nightly", lease()).await });
    sleep(SECOND / 2).await;
    first.release().await.unwrap();
    let second = next.await.unwrap().unwrap();
    assert!(!operator.force_release("nightly", &seen).await.unwrap());
    sleep(10 * SECOND).await;
    second.ensure_held().unwrap();
    let by_now = operator.holder("nightly").await.unwrap().unwrap();
    assert_ne!(by_now.id, seen.id);
    // The id alone will do, also as an operator has typed it.
    let typed: HolderId = by_now.id.to_string().parse().unwrap();
    assert!(operator.force_release("nightly", typed).await.unwrap());
    assert!(matches!(second.release().await, Err(Error::Lost { .. })));
    // So will the holder that a refused call names.
    let third = here.acquire("nightly", lease()).await.unwrap();
    let refused = operator.acquire("nightly", LockOptions::new().retry(0)).await.unwrap_err();
    let Error::Contended { holder: Some(holder), .. } = refused else { panic!("{refused:?}") };
    assert!(operator.force_release("nightly", &*holder).await.unwrap());
    assert!(third.release().await.is_err());
}

/// Red without: the comparison of the ids, or `extract_if` in `Locks::force_release`.
#[tokio::test(start_paused = true)]
async fn of_the_holders_of_permits_the_one_that_was_seen_loses_its_permit() {
    let [one, two, operator] = managers(["", "", ""]);
    let guards = [
        one.acquire("pool", lease().permits(2)).await.unwrap(),
        two.acquire("pool", lease().permits(2)).await.unwrap(),
    ];
    for left in [1, 0] {
        let seen = operator.holder("pool").await.unwrap().unwrap();
        assert!(operator.force_release("pool", &seen).await.unwrap());
        assert!(!operator.force_release("pool", &seen).await.unwrap(), "once");
        sleep(2 * SECOND).await;
        let hold = guards.iter().filter(|guard| guard.ensure_held().is_ok()).count();
        assert_eq!(hold, left);
    }
}

/// The body under the evicted lock is stopped, and the call returns the reason.
#[tokio::test(start_paused = true)]
async fn a_body_that_runs_under_it_is_stopped() {
    let [here, operator] = managers(["", ""]);
    let body = here.with_lock("nightly", lease(), async |_lease| sleep(60 * SECOND).await);
    let force = async {
        sleep(SECOND / 2).await;
        force_release(&operator, "nightly").await
    };
    let (ended, forced) = tokio::join!(body, force);
    assert!(forced.unwrap());
    assert!(matches!(ended, Err(Error::Lost { reason: LostReason::Taken, .. })), "{ended:?}");
}

/// A holder of several locks loses all of them, and leaves none behind.
#[tokio::test(start_paused = true)]
async fn a_process_that_holds_several_loses_all_with_one() {
    let [here, operator] = managers(["", ""]);
    let both = here.acquire_all(["a", "b"], lease()).await.unwrap();
    assert!(force_release(&operator, "b").await.unwrap());
    both.lost().await;
    let lost = both.ensure_held();
    assert!(matches!(lost, Err(Error::Lost { reason: LostReason::Taken, .. })), "{lost:?}");
    drop(both);
    sleep(SECOND / 10).await;
    assert_eq!(operator.held_locks().await.unwrap(), [], "long before its lease would have ended");
}

/// Tasks of the holder's process wait in a queue of that process.
#[tokio::test(start_paused = true)]
async fn a_task_of_the_holders_own_process_gets_it_then() {
    let [here, operator] = managers(["", ""]);
    let hangs = here.acquire("nightly", lease()).await.unwrap();
    let waits = tokio::spawn({
        let here = here.clone();
        async move { here.acquire("nightly", lease()).await }
    });
    sleep(SECOND / 2).await;
    assert!(force_release(&operator, "nightly").await.unwrap());
    hangs.lost().await;
    assert!(hangs.release().await.is_err());
    let next = waits.await.unwrap().unwrap();
    next.ensure_held().unwrap();
    next.release().await.unwrap();
}

/// Red without: the default bodies in `Store`, or the key of the error in `held_locks`.
#[tokio::test(start_paused = true)]
async fn a_store_that_can_do_neither_says_so() {
    let store = Arc::new(Unqueued::default());
    let manager = LockManager::builder().store(store).build().unwrap();
    let _held = manager.acquire("a", lease()).await.unwrap();
    let said = |error: &Error| match error {
        Error::Store { key, source } => (key.clone(), source.to_string()),
        other => panic!("{other:?}"),
    };
    let (key, sentence) = said(&manager.held_locks().await.unwrap_err());
    assert_eq!(key, "lock:*");
    assert!(sentence.contains("cannot list"), "{sentence}");
    let (key, sentence) = said(&force_release(&manager, "a").await.unwrap_err());
    assert_eq!(key, "a");
    assert!(sentence.contains("end the holder's process"), "{sentence}");
}

/// Red without: the default body of `refuses_claim`.
#[tokio::test(start_paused = true)]
async fn a_store_that_says_nothing_of_other_kinds_of_locks_has_none() {
    let manager = LockManager::builder().store(Unqueued::default()).build().unwrap();
    for (keys, options) in [
        (["a"].as_slice(), lease().mode(Mode::Shared)),
        (&["a"], lease().permits(2)),
        (&["a", "b"], lease()),
    ] {
        let refused = manager.acquire_all(keys, options).await.map(drop).unwrap_err();
        assert!(matches!(refused, Error::InvalidOptions { .. }), "{refused:?}");
        assert!(refused.to_string().contains("exclusive locks with one key only"), "{refused}");
    }
    assert!(manager.holder("a").await.unwrap().is_none());
}
