//! An acquire without an answer is undone, or adopted by the next attempt.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use lockattr::{Error, Lease, LockOptions};
use lockattr_tests::{Fault, eventually, in_time};

use super::{SECOND, World, faults};

#[tokio::test]
async fn an_acquire_without_an_answer_runs_no_body_and_is_undone() {
    join_all(faults().into_iter().map(|(fault, effective)| async move {
        let world = loop {
            let world = World::quick().await;
            world.proxy.next("acquire", fault.clone());
            let ran = AtomicBool::new(false);
            let body = async |_: &Lease| ran.store(true, Ordering::SeqCst);
            let once = LockOptions::new().retry(0);
            let error = world.manager.with_lock("a", once, body).await.unwrap_err();
            assert!(
                matches!(&error, Error::Store { key, .. } if key == "a"),
                "{fault:?}: {error:?}"
            );
            assert!(!ran.load(Ordering::SeqCst), "{fault:?}: a body without its lock");
            // A busy machine may not have sent it in time.
            if world.proxy.seen("acquire") > 0 {
                break world;
            }
        };
        // The counter shows whether the server has executed it.
        let counted = async || world.cli.value("lockattr:fence").await.is_some() == effective;
        eventually("executed, or not", counted).await;
        world.ends_well().await;
    }))
    .await;
}

/// An attempt is not blocked by the lock that an earlier attempt left, and holds it once: one
/// release frees it.
#[tokio::test]
async fn an_acquire_without_an_answer_is_adopted_by_the_next_attempt() {
    join_all(faults().into_iter().map(|(fault, _)| async move {
        let world = World::quick().await;
        world.proxy.next("acquire", fault.clone());
        let guard = in_time(world.manager.acquire("a", LockOptions::new())).await.unwrap();
        assert!(world.proxy.seen("acquire") >= 2, "{fault:?}");
        drop(guard);
        eventually("one release frees it", async || world.value().await.is_none()).await;
        world.ends_well().await;
    }))
    .await;
}

#[tokio::test]
async fn a_grant_that_arrives_after_its_lease_expired_is_discarded() {
    let world = World::new().await;
    world.proxy.next("acquire", Fault::HoldReply);
    let options = LockOptions::new().ttl(SECOND / 5).retry(0);
    let late = tokio::spawn({
        let manager = world.manager.clone();
        async move { manager.acquire("a", options).await }
    });
    let granted = async || world.cli.value("lockattr:fence").await.is_some();
    eventually("granted", granted).await;
    eventually("lapsed", async || world.value().await.is_none()).await;
    // Another client has it by the time that the first reads its grant.
    let next = world.another().await.acquire("a", LockOptions::new()).await.unwrap();
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
    let world = World::new().await;
    world.proxy.next("acquire", Fault::Delay(SECOND / 2));
    let options = LockOptions::new().ttl(SECOND / 3).retry(0);
    let error = world.manager.acquire("a", options).await.unwrap_err();
    assert!(matches!(error, Error::Store { .. }), "{error:?}");
    eventually("undone", async || world.proxy.answered("release") >= 1).await;
    assert_eq!(world.value().await, None);
    world.ends_well().await;
}

#[tokio::test]
async fn a_waiter_outlives_every_fault_until_the_lock_is_free() {
    let world = World::quick().await;
    let holder = world.another().await;
    let held = holder.acquire("a", LockOptions::new()).await.unwrap();
    for (fault, _) in faults() {
        world.proxy.next("acquire", fault);
    }
    let waiting = tokio::spawn({
        let manager = world.manager.clone();
        async move { manager.acquire("a", LockOptions::new()).await }
    });
    let all = faults().len();
    eventually("all have happened", async || world.proxy.seen("acquire") > all).await;
    assert!(!waiting.is_finished());
    held.release().await.unwrap();
    drop(in_time(waiting).await.unwrap().expect("granted at last"));
    world.ends_well().await;
}

/// Contention is an answer; an outage is not.
#[tokio::test]
async fn the_last_attempt_says_whether_it_was_contention_or_an_outage() {
    let world = World::new().await;
    let held = world.another().await.acquire("a", LockOptions::new()).await.unwrap();
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
