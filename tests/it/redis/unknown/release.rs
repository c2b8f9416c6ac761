//! A release without an answer is retried, and harms no other holder when it arrives twice.

use futures_util::future::join_all;
use lockattr::{Error, LockOptions, Release};
use lockattr_tests::{Fault, capture_events, eventually};

use super::{World, faults};

#[tokio::test]
async fn a_release_without_an_answer_is_an_error_and_is_retried() {
    join_all(faults().into_iter().map(|(fault, _)| async move {
        let (world, guard) = World::holding(LockOptions::new()).await;
        world.proxy.next("release", fault.clone());
        let error = guard.release().await.unwrap_err();
        assert!(matches!(&error, Error::Store { key, .. } if key == "a"), "{fault:?}: {error:?}");
        eventually("released", async || world.value().await.is_none()).await;
        let proxy = &world.proxy;
        let again = async || proxy.answered("release") >= 1 && proxy.seen("release") >= 2;
        eventually("sent again", again).await;
        world.ends_well().await;
    }))
    .await;
}

/// The caller has its value already, so the manager retries.
#[tokio::test]
async fn a_release_in_the_background_or_by_drop_is_retried_until_it_succeeds() {
    let cases = faults().into_iter().flat_map(|(fault, _)| [(fault.clone(), false), (fault, true)]);
    join_all(cases.map(|(fault, dropped)| async move {
        let world = World::quick().await;
        world.proxy.next("release", fault.clone());
        let options = LockOptions::new().release(Release::Background);
        if dropped {
            drop(world.manager.acquire("a", options).await.unwrap());
        } else {
            assert_eq!(world.manager.with_lock("a", options, async |_| 17).await.unwrap(), 17);
        }
        eventually("released", async || world.value().await.is_none()).await;
        world.ends_well().await;
    }))
    .await;
}

#[tokio::test]
async fn what_the_body_returned_is_not_hidden_by_its_release() {
    let events = capture_events();
    let world = World::new().await;
    world.proxy.next("release", Fault::CutAfter);
    let body = async |_: &_| Err::<(), _>("the body's own error");
    let result = world.manager.with_lock("a", LockOptions::new(), body).await;
    assert_eq!(result.unwrap(), Err("the body's own error"));
    assert_eq!(events.count("the release got no answer"), 1);
    world.ends_well().await;
}

#[tokio::test]
async fn a_release_that_arrives_again_frees_no_others_lock() {
    let world = World::new().await;
    let guard = world.manager.acquire("a", LockOptions::new()).await.unwrap();
    world.proxy.next("release", Fault::CutAfter);
    // The next holder has the lock before the server gets it again.
    world.proxy.next("release", Fault::HoldRequest);
    assert!(matches!(guard.release().await, Err(Error::Store { .. })));
    let next = world.another().await.acquire("a", LockOptions::new()).await.unwrap();
    let value = world.value().await;
    eventually("it is sent again", async || world.proxy.seen("release") >= 2).await;
    world.proxy.pass();
    eventually("the server has it", async || world.proxy.answered("release") >= 1).await;
    assert_eq!(world.value().await, value);
    next.release().await.expect("still held by it");
    world.ends_well().await;
}
