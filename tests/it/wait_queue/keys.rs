//! Locks on several keys at once.

use std::collections::BTreeSet;
use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions, LostReason};
use lockattr_tests::{RedisServer, assert_nothing_left};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::{MS, SECOND, long_wait, on, settle};
use crate::support::Scripted;

fn names(guard: &lockattr::Lease) -> Vec<&str> {
    guard.keys().collect()
}

/// Red without: the order and the `dedup` in `acquire_all_on`.
#[tokio::test(start_paused = true)]
async fn equal_keys_count_once() {
    let manager = Scripted::new().manager();
    let all = ["b", "a", "b", "a", "b"];
    let guard = manager.acquire_all(all, permits_of_one()).await.unwrap();
    assert_eq!(names(&guard), ["a", "b"]);
    assert_eq!(guard.key(), "a");
    guard.release().await.unwrap();
    for key in ["a", "b"] {
        assert_eq!(manager.holder(key).await.unwrap(), None);
    }
}

fn permits_of_one() -> LockOptions {
    LockOptions::new().permits(1)
}

/// Red without: the last arm of `acquire_all_on`.
#[tokio::test(start_paused = true)]
async fn an_empty_list_of_keys_is_refused() {
    let store = Scripted::new();
    let manager = store.manager();
    let error = manager.acquire_all(Vec::<String>::new(), LockOptions::new()).await.unwrap_err();
    let Error::InvalidKey(sentence) = &error else { panic!("{error:?}") };
    assert_eq!(sentence, "no key is given: name what to lock");
    let error = manager.acquire_all(["a", ""], LockOptions::new()).await.unwrap_err();
    assert!(matches!(error, Error::InvalidKey(_)), "{error:?}");
    assert_eq!(store.calls().acquires, 0);
}

/// Red without: acquiring all keys or none.
#[tokio::test(start_paused = true)]
async fn a_waiter_for_several_keys_blocks_no_other_from_the_free_ones() {
    let store = Scripted::new();
    let (here, there) = (store.manager(), on(&store).build().unwrap());
    let held = there.acquire("b", LockOptions::new()).await.unwrap();
    let both = {
        let here = here.clone();
        tokio::spawn(async move { here.acquire_all(["a", "b"], long_wait()).await })
    };
    settle().await;
    assert_eq!(here.holder("a").await.unwrap(), None);
    for manager in [&here, &there] {
        let waits = LockOptions::new().wait(SECOND / 2);
        manager.acquire("a", waits).await.expect("overtaken").release().await.unwrap();
    }
    held.release().await.unwrap();
    let both = both.await.unwrap().unwrap();
    for key in ["a", "b"] {
        assert!(there.try_acquire(key, LockOptions::new()).await.unwrap().is_none());
    }
    sleep(60 * SECOND).await;
    both.ensure_held().unwrap();
    both.release().await.unwrap();
}

/// The error names all requested keys.
///
/// Red without: `Claim::named`.
#[tokio::test(start_paused = true)]
async fn several_keys_are_contended_by_the_holder_of_one() {
    let manager = Scripted::new().manager();
    let _held = manager.acquire("b", LockOptions::new().function("other")).await.unwrap();
    let error = manager.acquire_all(["c", "b", "a"], LockOptions::new().wait(SECOND)).await;
    let error = error.unwrap_err();
    let Error::Contended { key, holder: Some(holder), .. } = &error else { panic!("{error:?}") };
    assert_eq!((key.as_str(), holder.function.as_deref()), ("a, b, c", Some("other")));
    settle().await;
    for key in ["a", "c"] {
        assert_eq!(manager.holder(key).await.unwrap(), None);
    }
}

/// Three tasks in each of two processes; each takes the same keys in an order of its own.
///
/// Red without: acquiring all keys or none.
#[tokio::test(start_paused = true)]
async fn the_same_keys_in_other_orders_do_not_deadlock() {
    let store = Scripted::new();
    let managers = [store.manager(), on(&store).build().unwrap()];
    let orders = [["a", "b", "c"], ["c", "b", "a"], ["b", "a", "c"]];
    let mut tasks = JoinSet::new();
    for manager in &managers {
        for order in orders {
            let manager: LockManager = manager.clone();
            tasks.spawn(async move {
                for _ in 0..20 {
                    let all = manager.acquire_all(order, long_wait()).await.unwrap();
                    sleep(MS).await;
                    all.release().await.unwrap();
                    let pair =
                        manager.acquire_all([order[2], order[0]], long_wait()).await.unwrap();
                    sleep(MS).await;
                    drop(pair);
                }
            });
        }
    }
    let began = Instant::now();
    timeout(3600 * SECOND, tasks.join_all()).await.expect("a deadlock");
    // 240 holds of a millisecond each, with no notable pauses.
    assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
    settle().await;
    for key in ["a", "b", "c"] {
        assert_eq!(managers[0].holder(key).await.unwrap(), None);
    }
}

/// Red without: the re-entry into held keys in `acquire_all_on`.
#[tokio::test(start_paused = true)]
async fn keys_that_the_chain_holds_already_are_entered_again() {
    let store = Scripted::new();
    let manager = store.manager();
    let outer = manager.acquire("a", LockOptions::new()).await.unwrap();
    let both = outer.scope(manager.acquire_all(["b", "a"], long_wait())).await.unwrap();
    assert!(names(&both).contains(&"b"));
    // `both` has the turn inside the outer hold; inside `both`, each key is entered again.
    let once = LockOptions::new().wait(Duration::ZERO);
    let nested = outer.scope(manager.try_acquire("a", once.clone())).await.unwrap();
    assert!(nested.is_none(), "two have the same turn");
    for key in ["a", "b"] {
        let inner = both.scope(manager.try_acquire(key, once.clone())).await.unwrap();
        assert!(inner.expect("held by the chain").depth() >= 2);
    }
    both.release().await.unwrap();
    assert_eq!(manager.holder("b").await.unwrap(), None);
    assert!(manager.holder("a").await.unwrap().is_some(), "the outer hold continues");
    drop(outer.scope(manager.try_acquire("a", once)).await.unwrap().expect("the turn is free"));
    assert_eq!(store.calls().acquires, 2);

    // Re-entry into two outer holds: no call to the store.
    let other = manager.acquire("b", LockOptions::new()).await.unwrap();
    let again = outer
        .scope(async { other.scope(manager.acquire_all(["a", "b"], long_wait())).await.unwrap() });
    let again = again.await;
    assert_eq!(again.depth(), 2);
    assert_eq!(store.calls().acquires, 3);
    // Re-entry into one hold of several keys.
    drop((again, outer));
    other.release().await.unwrap();
    let all = manager.acquire_all(["a", "b", "c"], LockOptions::new()).await.unwrap();
    let some = all.scope(manager.acquire_all(["c", "a"], long_wait())).await.unwrap();
    assert_eq!((some.depth(), some.fencing_token()), (2, all.fencing_token()));
    assert_eq!(store.calls().acquires, 4);
}

/// Red without: `chain::find` for every key.
#[tokio::test(start_paused = true)]
async fn reentrancy_can_be_disabled_for_several_keys() {
    let store = Scripted::new();
    let manager = store.manager();
    let outer = manager.acquire("b", LockOptions::new()).await.unwrap();
    let nested = manager.acquire_all(["a", "b"], LockOptions::new().reentrant(false));
    let error = outer.scope(nested).await.unwrap_err();
    assert!(matches!(error, Error::Reentered { ref key } if key == "b"), "{error:?}");
    assert_eq!((manager.holder("a").await.unwrap(), store.calls().acquires), (None, 1));
}

/// One of them is removed in the store: all are lost, and the rest is released.
///
/// Red without: the comparison of every key in `renew.lua`.
#[tokio::test]
async fn the_loss_of_one_key_is_the_loss_of_all() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    let keys = ["a", "b", "c"];
    for lost in keys {
        let guard = manager.acquire_all(keys, LockOptions::new()).await.unwrap();
        cli.query::<i64>(&["DEL", &format!("lock:{lost}")]).await;
        guard.extend(600 * SECOND).await.unwrap_err();
        let error = guard.release().await.unwrap_err();
        let Error::Lost { key, reason } = &error else { panic!("{error:?}") };
        assert_eq!((key.as_str(), *reason), ("a, b, c", LostReason::Taken));
        let left: BTreeSet<_> = cli.keys("lock:*").await.into_iter().collect();
        assert!(left.is_empty(), "{left:?}");
    }
    assert_nothing_left(&server).await;
}
