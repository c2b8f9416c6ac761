//! An acquire without an answer is undone, or adopted by the next attempt.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use lockattr::{Error, Lease, LockOptions};
use lockattr_tests::{Fault, eventually};

use super::{LIMIT, LONG, SECOND, World, faults};

#[tokio::test]
async fn an_acquire_without_an_answer_runs_no_body_and_is_undone() {
    join_all(faults().into_iter().map(|(fault, effective)| async move {
        let world = World::new().await;
        world.proxy.next("acquire", fault.clone());
        let ran = AtomicBool::new(false);
        let options = LockOptions::new().ttl(LONG).retry(0);
        let body = async |_: &Lease| ran.store(true, Ordering::SeqCst);
        let error = world.manager.with_lock("a", options, body).await.unwrap_err();
        assert!(matches!(&error, Error::Store { key, .. } if key == "a"), "{fault:?}: {error:?}");
        assert!(!ran.load(Ordering::SeqCst), "{fault:?}: a body without its lock");
        // The counter shows whether the server has executed it.
        let counted = world.cli.value("lockattr:fence").await.is_some();
        assert_eq!(counted, effective, "{fault:?}");
        world.ends_well().await;
    }))
    .await;
}

/// An attempt is not blocked by the lock that an earlier attempt left, and holds it once: one
/// release frees it.
#[tokio::test]
async fn an_acquire_without_an_answer_is_adopted_by_the_next_attempt() {
    join_all(faults().into_iter().map(|(fault, _)| async move {
        let world = World::new().await;
        world.proxy.next("acquire", fault.clone());
        let options = LockOptions::new().ttl(LONG).wait(LIMIT);
        let guard = world.manager.acquire("a", options).await.unwrap();
        assert!(world.proxy.seen("acquire") >= 2, "{fault:?}");
        guard.release().await.unwrap();
        assert_eq!(world.value().await, None, "{fault:?}");
        world.ends_well().await;
    }))
    .await;
}

#[tokio::test]
async fn a_grant_that_arrives_after_its_lease_expired_is_discarded() {
    let world = World::with("response_timeout=20s").await;
    world.proxy.next("acquire", Fault::HoldReply);
    let options = LockOptions::new().ttl(SECOND / 5).retry(0);
    let late = tokio::spawn({
        let manager = world.manager.clone();
        async move { manager.acquire("a", options).await }
    });
    eventually("granted", async || world.value().await.is_some()).await;
    eventually("lapsed", async || world.value().await.is_none()).await;
    // Another client has it by the time that the first reads its grant.
    let next = world.another().await.acquire("a", LockOptions::new().ttl(LONG)).await.unwrap();
    world.proxy.pass();
    let error = late.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Store { .. }), "{error:?}");
    eventually("undone", async || world.proxy.answered("release") >= 1).await;
    next.release().await.expect("the undo freed another holder's lock");
    world.ends_well().await;
}

/// The lease began when the server got the request: late, but for the whole TTL. No caller waits
/// for its end.
#[tokio::test]
async fn a_request_delayed_for_longer_than_its_lease_is_undone() {
    let world = World::with("response_timeout=20s").await;
    world.proxy.next("acquire", Fault::Delay(SECOND / 2));
    let options = LockOptions::new().ttl(SECOND / 3).retry(0);
    let error = world.manager.acquire("a", options).await.unwrap_err();
    assert!(matches!(error, Error::Store { .. }), "{error:?}");
    eventually("undone", async || world.proxy.answered("release") == 1).await;
    assert_eq!(world.value().await, None);
    world.ends_well().await;
}

#[tokio::test]
async fn a_waiter_outlives_every_fault_until_the_lock_is_free() {
    let world = World::new().await;
    let holder = world.another().await;
    let held = holder.acquire("a", LockOptions::new().ttl(LONG)).await.unwrap();
    for (fault, _) in faults() {
        world.proxy.next("acquire", fault);
    }
    let waiting = tokio::spawn({
        let (manager, options) = (world.manager.clone(), LockOptions::new().wait(LIMIT));
        async move { manager.acquire("a", options).await }
    });
    let all = faults().len();
    eventually("all have happened", async || world.proxy.seen("acquire") > all).await;
    assert!(!waiting.is_finished());
    held.release().await.unwrap();
    waiting.await.unwrap().expect("granted at last").release().await.unwrap();
    world.ends_well().await;
}

/// Contention is an answer; an outage is not.
#[tokio::test]
async fn the_last_attempt_says_whether_it_was_contention_or_an_outage() {
    let world = World::new().await;
    let held = world.another().await.acquire("a", LockOptions::new().ttl(LONG)).await.unwrap();
    let down = || Fault::Answer("LOADING Redis is loading the dataset in memory".into());
    let error = world.manager.acquire("a", LockOptions::new().retry(0)).await.unwrap_err();
    assert!(matches!(error, Error::Contended { attempts: 1, .. }), "{error:?}");
    world.proxy.next("acquire", down());
    let error = world.manager.acquire("a", LockOptions::new().retry(1)).await.unwrap_err();
    assert!(matches!(error, Error::Contended { attempts: 2, .. }), "{error:?}");
    world.proxy.always("acquire", down());
    let error = world.manager.acquire("a", LockOptions::new().retry(1)).await.unwrap_err();
    assert!(matches!(error, Error::Store { .. }), "{error:?}");
    held.release().await.unwrap();
    world.ends_well().await;
}
