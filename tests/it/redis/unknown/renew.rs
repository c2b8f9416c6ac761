//! A renewal without an answer is retried until the deadline; only the deadline, or a clear answer,
//! is a loss.

use futures_util::future::join_all;
use std::time::Duration;

use lockattr::{Error, LockOptions, LostReason};
use lockattr_tests::{Fault, eventually, in_time};

use super::{SECOND, World, faults};

/// Renewed after a third of it, which leaves a slow machine time for another attempt.
const TTL: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_renewal_without_an_answer_is_tried_again() {
    join_all(faults().into_iter().map(|(fault, _)| async move {
        let (world, guard) = World::holding(LockOptions::new().ttl(TTL)).await;
        let value = world.value().await;
        world.proxy.next("renew", fault.clone());
        eventually("tried again", async || world.proxy.seen("renew") >= 2).await;
        eventually("renewed", async || guard.remaining() > TTL * 2 / 3).await;
        guard.ensure_held().unwrap();
        assert_eq!(world.value().await, value, "{fault:?}");
        drop(guard);
        world.ends_well().await;
    }))
    .await;
}

/// The timer reports the loss, not the answer, which never comes.
#[tokio::test]
async fn a_renewal_that_hangs_does_not_delay_the_loss() {
    join_all([Fault::HoldRequest, Fault::HoldReply, Fault::HalfOpen].map(|fault| async move {
        let world = World::with("response_timeout=1h&heartbeat=1h").await;
        let options = LockOptions::new().ttl(SECOND);
        let guard = world.manager.acquire("a", options).await.unwrap();
        world.proxy.always("renew", fault.clone());
        in_time(guard.lost()).await;
        let error = guard.ensure_held().unwrap_err();
        let expired = matches!(error, Error::Lost { reason: LostReason::Expired, .. });
        assert!(expired, "{fault:?}: {error:?}");
        // Dropped, not released: the connection hangs.
        drop(guard);
        world.ends_well().await;
    }))
    .await;
}

/// Unlike in one other library, an extension that fails does not undo the lock.
#[tokio::test]
async fn a_renewal_that_is_refused_releases_nothing() {
    let world = World::new().await;
    let options = LockOptions::new().ttl(TTL);
    let guard = world.manager.acquire("a", options).await.unwrap();
    world.proxy.always("renew", Fault::Answer("ERR something new".into()));
    eventually("tried", async || world.proxy.seen("renew") >= 2).await;
    assert!(matches!(guard.extend(10 * SECOND).await, Err(Error::Store { .. })));
    guard.ensure_held().unwrap();
    assert!(world.value().await.is_some());
    assert_eq!(world.proxy.seen("release"), 0);
    world.proxy.pass();
    eventually("renewed", async || guard.remaining() > TTL * 2 / 3).await;
    guard.release().await.unwrap();
    world.ends_well().await;
}

/// Whether the store has the longer lease is unknown, so no caller may rely on it.
#[tokio::test]
async fn an_extend_without_an_answer_lengthens_nothing_here() {
    let world = World::new().await;
    let options = LockOptions::new().ttl(TTL);
    let guard = world.manager.acquire("a", options).await.unwrap();
    world.proxy.next("renew", Fault::CutAfter);
    assert!(matches!(guard.extend(60 * SECOND).await, Err(Error::Store { .. })));
    assert!(guard.remaining() <= TTL);
    eventually("renewed", async || world.proxy.answered("renew") >= 1).await;
    guard.ensure_held().unwrap();
    assert!(guard.remaining() <= TTL);
    guard.release().await.unwrap();
    world.ends_well().await;
}
