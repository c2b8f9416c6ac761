//! Calls that still wait for their lock when the manager is shut down.

use std::pin::pin;

use futures_util::future::poll_immediate;
use lockattr::{Error, Lease, LockGuard, LockManager, LockOptions, OnLost};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::{SECOND, is_shut_down, manager};
use crate::support::{Fate, Scripted};

/// Waits for `key` in a task of its own, with pauses of 10 to 20 s and a wait budget of an hour.
fn waiter(manager: &LockManager, key: &'static str) -> JoinHandle<Result<LockGuard, Error>> {
    let manager = manager.clone();
    let long_wait = LockOptions::new().wait(3600 * SECOND).retry_delay(20 * SECOND);
    tokio::spawn(async move { manager.acquire(key, long_wait).await })
}

/// The holder is slow, so the shutdown is slow too. The waiters are refused at once.
#[tokio::test(start_paused = true)]
async fn a_waiter_in_its_pause_is_refused_at_once() {
    let manager = manager();
    let _held = manager.acquire("job", LockOptions::new()).await.unwrap();
    let waiters = [waiter(&manager, "job"), waiter(&manager, "job")];
    sleep(SECOND).await;
    let shutdown = {
        let manager = manager.clone();
        tokio::spawn(async move { manager.shutdown().await })
    };
    let started = Instant::now();
    for waiter in waiters {
        let error = waiter.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::ShutDown { ref key } if key == "job"), "{error:?}");
        let waited = started.elapsed();
        assert!(waited < SECOND, "notified only after {waited:?}");
    }
    shutdown.await.unwrap();
    assert_eq!(manager.holder("job").await.unwrap(), None);
}

/// A grant to the hanging attempt is undone.
#[tokio::test(start_paused = true)]
async fn a_waiter_whose_store_does_not_answer_is_refused_at_once() {
    let store = Scripted::new();
    let manager = store.manager();
    store.acquires(&[Fate::Late(600 * SECOND)]);
    let waiter = waiter(&manager, "job");
    sleep(SECOND).await;
    let started = Instant::now();
    manager.shutdown().await;
    let error = waiter.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::ShutDown { ref key } if key == "job"), "{error:?}");
    let waited = started.elapsed();
    assert!(waited < SECOND, "notified only after {waited:?}");
    sleep(SECOND).await;
    assert_eq!(manager.holder("job").await.unwrap(), None);
}

/// A grant that has arrived but was not read before the shutdown is void: its body would never be
/// told to stop.
#[tokio::test(start_paused = true)]
async fn a_grant_that_arrives_with_the_shutdown_is_released() {
    let store = Scripted::new();
    let manager = store.manager();
    // This lease is due for renewal before the late one, so the late grant wakes no watchdog and is
    // checked at once.
    let other = manager.acquire("other", LockOptions::new().ttl(30 * SECOND)).await.unwrap();
    sleep(SECOND / 10).await;
    store.acquires(&[Fate::Late(SECOND)]);
    let mut late = pin!(manager.acquire("late", LockOptions::new().ttl(60 * SECOND)));
    assert!(poll_immediate(late.as_mut()).await.is_none(), "granted without an answer");
    sleep(2 * SECOND).await;
    let mut shutdown = pin!(manager.shutdown());
    assert!(poll_immediate(shutdown.as_mut()).await.is_none(), "a grant is still pending");
    let error = late.await.unwrap_err();
    assert!(matches!(error, Error::ShutDown { ref key } if key == "late"), "{error:?}");
    drop(other);
    shutdown.await;
    assert_eq!(manager.holder("late").await.unwrap(), None);
}

/// One branch is inside and the other waits for its turn. Both are notified, without waiting for a
/// pause.
#[tokio::test(start_paused = true)]
async fn a_nested_call_that_waits_for_its_turn_is_notified_at_once() {
    let manager = manager();
    let (sender, receiver) = oneshot::channel();
    let job = {
        let manager = manager.clone();
        tokio::spawn(async move {
            // The body continues for a moment after the notification, as one with `on_lost = error`
            // may.
            let slow = LockOptions::new().on_lost(OnLost::Error);
            let body = async |lease: &Lease| {
                let inside = manager.with_lock("job", slow.clone(), async |_: &Lease| {
                    lease.lost().await;
                    sleep(SECOND).await;
                });
                let long_wait = LockOptions::new().wait(3600 * SECOND).retry_delay(20 * SECOND);
                let waiting = async {
                    let refused = manager.acquire("job", long_wait).await;
                    sender.send((refused.map(drop), Instant::now())).unwrap();
                };
                tokio::join!(inside, waiting)
            };
            manager.with_lock("job", slow.clone(), body).await
        })
    };
    sleep(SECOND).await;
    let started = Instant::now();
    manager.shutdown().await;
    assert_eq!(started.elapsed(), SECOND);
    let (refused, at) = receiver.await.unwrap();
    assert!(is_shut_down(&refused) && at == started, "{refused:?} after {:?}", at - started);
    assert!(is_shut_down(&job.await.unwrap()));
    assert_eq!(manager.holder("job").await.unwrap(), None);
}
