//! How long waiters wait, and what is left of one that gives up.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::poll_immediate;
use lockattr::{Error, LockOptions, Mode};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep};

use super::{MS, SECOND, acquired_by, long_wait, on, settle, spawn_acquire};
use crate::support::{Fate, Scripted};

/// A caller behind a holder of its own process knows that the lock is taken, and does not ask the
/// store.
///
/// Red without: the deadline in `LocalQueue::wait`, or what is known in `last_word`.
#[tokio::test(start_paused = true)]
async fn a_waiter_whose_time_is_over_is_contended_and_the_next_gets_in() {
    let store = Scripted::new();
    let manager = store.manager();
    let began = Instant::now();
    let held = manager.acquire("a", LockOptions::new().function("first")).await.unwrap();
    let hasty = spawn_acquire(&manager, LockOptions::new().wait(SECOND)).await;
    let next = spawn_acquire(&manager, long_wait()).await;
    let (error, at) = hasty.await.unwrap();
    let error = error.unwrap_err();
    let Error::Contended { key, attempts, waited, holder: Some(holder) } = error else {
        panic!("{error:?}");
    };
    assert_eq!((key.as_str(), attempts, waited), ("a", 1, SECOND));
    assert_eq!(holder.function.as_deref(), Some("first"));
    assert_eq!(at - began, SECOND);
    held.release().await.unwrap();
    let next = acquired_by(next).await.0;
    assert_eq!(store.calls().acquires, 1, "the holder's");
    next.release().await.unwrap();
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// The wait lasts as long as that many pauses, each of at least half the delay.
///
/// Red without: the retries in `Attempts::line_ends`.
#[tokio::test(start_paused = true)]
async fn a_waiter_with_retries_waits_for_as_long_as_they_would_take() {
    let manager = Scripted::new().manager();
    let _held = manager.acquire("a", LockOptions::new()).await.unwrap();
    let began = Instant::now();
    let retries = LockOptions::new().retry(4).retry_delay(10 * SECOND);
    let error = manager.acquire("a", retries).await.unwrap_err();
    let Error::Contended { attempts: 5, waited, .. } = error else { panic!("{error:?}") };
    assert!((20 * SECOND..=40 * SECOND).contains(&waited), "{waited:?}");
    assert_eq!(waited, began.elapsed());
}

/// Red without: `Patience::once`; taking no place in the queue for such a call.
#[tokio::test(start_paused = true)]
async fn a_caller_without_a_wait_does_not_wait_behind_others() {
    let manager = Scripted::new().manager();
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    let waiter = spawn_acquire(&manager, long_wait()).await;
    let began = Instant::now();
    assert!(manager.try_acquire("a", LockOptions::new()).await.unwrap().is_none());
    for once in [LockOptions::new().wait(Duration::ZERO), LockOptions::new().retry(0)] {
        let error = manager.acquire("a", once).await.unwrap_err();
        assert!(matches!(error, Error::Contended { attempts: 1, .. }), "{error:?}");
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    held.release().await.unwrap();
    acquired_by(waiter).await.0.release().await.unwrap();
}

/// Red without: the hand-off in `HeldLease::pass_on`.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_dropped_leaves_nothing_and_the_next_gets_in() {
    let store = Scripted::new();
    let manager = store.manager();
    let held = manager.acquire("a", long_wait()).await.unwrap();
    let waiters =
        [spawn_acquire(&manager, long_wait()).await, spawn_acquire(&manager, long_wait()).await];
    let next = spawn_acquire(&manager, long_wait()).await;
    waiters.iter().for_each(JoinHandle::abort);
    settle().await;
    held.release().await.unwrap();
    acquired_by(next).await.0.release().await.unwrap();
    assert_eq!(manager.holder("a").await.unwrap(), None);
    let calls = store.calls();
    assert_eq!((calls.acquires, calls.releases), (1, vec![1]));
}

/// The waiter was handed the lock, and is dropped before its next poll.
///
/// Red without: taking the hand-off out of a place that is dropped.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_dropped_after_its_hand_off_passes_the_lock_on() {
    let store = Scripted::new();
    let manager = store.manager();
    let held = manager.acquire("a", long_wait()).await.unwrap();
    {
        let mut first = pin!(manager.acquire("a", long_wait()));
        let mut second = pin!(manager.acquire("a", long_wait()));
        assert!(poll_immediate(first.as_mut()).await.is_none());
        assert!(poll_immediate(second.as_mut()).await.is_none());
        held.release().await.unwrap();
        assert!(manager.holder("a").await.unwrap().is_some(), "it was handed to a waiter");
    }
    settle().await;
    assert_eq!(manager.holder("a").await.unwrap(), None);
    // The right to ask the store is passed on in the same way.
    let held = manager.acquire("a", long_wait()).await.unwrap();
    let next = {
        let mut first = pin!(manager.acquire("a", long_wait().renew(false)));
        assert!(poll_immediate(first.as_mut()).await.is_none());
        let next = spawn_acquire(&manager, long_wait()).await;
        held.release().await.unwrap();
        next
    };
    acquired_by(next).await.0.release().await.unwrap();
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// The task was handed the lock, and was not polled for longer than the lease.
///
/// Red without: the check of the handed lease in `LocalQueue::wait`.
#[tokio::test(start_paused = true)]
async fn a_lock_that_expired_after_its_hand_off_is_acquired_again() {
    let store = Scripted::new();
    let manager = store.manager();
    let held = manager.acquire("a", long_wait()).await.unwrap();
    let mut slow = pin!(manager.acquire("a", long_wait()));
    assert!(poll_immediate(slow.as_mut()).await.is_none());
    held.release().await.unwrap();
    store.restart();
    sleep(60 * SECOND).await;
    let guard = slow.await.unwrap();
    guard.ensure_held().unwrap();
    assert_eq!(store.calls().acquires, 2);
    guard.release().await.unwrap();
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// The store does not answer, which does not matter to callers that wait for a holder of their own
/// process.
///
/// Red without: `Known::Ours`.
#[tokio::test(start_paused = true)]
async fn a_waiter_behind_its_own_process_is_contended_whatever_the_store_does() {
    let store = Scripted::new();
    let manager = store.manager();
    let held = manager.acquire("a", LockOptions::new().ttl(60 * SECOND)).await.unwrap();
    store.acquires(&[Fate::Refused]);
    let waiters = [
        spawn_acquire(&manager, LockOptions::new().wait(SECOND)).await,
        spawn_acquire(&manager, LockOptions::new().retry(1).retry_delay(SECOND)).await,
    ];
    for waiter in waiters {
        let (error, _) = waiter.await.unwrap();
        let error = error.unwrap_err();
        assert!(matches!(error, Error::Contended { ref key, .. } if key == "a"), "{error:?}");
    }
    // Inside the process the lock is handed off all the same.
    let next = spawn_acquire(&manager, long_wait().ttl(60 * SECOND)).await;
    held.release().await.unwrap();
    acquired_by(next).await.0.ensure_held().unwrap();
    assert_eq!(store.calls().acquires, 1);
}

/// The future that asks for all waiters is polled once and never again, while the store is free.
///
/// Red without: `pass_over_silent`, or the head's sign that it is still polled.
#[tokio::test(start_paused = true)]
async fn a_head_that_is_no_longer_polled_delays_its_process_by_seconds_only() {
    let store = Scripted::new();
    let (here, there) = (store.manager(), on(&store).build().unwrap());
    let held = there.acquire("a", LockOptions::new().ttl(SECOND)).await.unwrap();
    let mut stuck = pin!(here.acquire("a", long_wait().ttl(SECOND)));
    assert!(poll_immediate(stuck.as_mut()).await.is_none());
    let next = spawn_acquire(&here, LockOptions::new().wait(30 * SECOND)).await;
    held.release().await.unwrap();
    let guard = acquired_by(next).await.0;
    guard.ensure_held().unwrap();
    guard.release().await.unwrap();
    stuck.await.unwrap().release().await.unwrap();
    assert_eq!(here.holder("a").await.unwrap(), None);
}

/// The asker gets no answer. Of the callers that time out, one asks for all, and the others learn
/// its result.
///
/// Red without: the time for its question in `last_word`.
#[tokio::test(start_paused = true)]
async fn callers_behind_a_silent_head_share_the_answer_that_one_of_them_gets() {
    let store = Scripted::new();
    let (here, there) = (store.manager(), on(&store).build().unwrap());
    let held = there.acquire("a", long_wait()).await.unwrap();
    let mut stuck = pin!(here.acquire("a", long_wait()));
    store.acquires(&[Fate::Hangs, Fate::Answered]);
    assert!(poll_immediate(stuck.as_mut()).await.is_none());
    let mut waiters = Vec::new();
    for _ in 0..6 {
        waiters.push(spawn_acquire(&here, LockOptions::new().wait(300 * MS)).await);
    }
    for waiter in waiters {
        let (error, _) = waiter.await.unwrap();
        let error = error.unwrap_err();
        assert!(matches!(error, Error::Contended { .. }), "{error:?}");
    }
    held.release().await.unwrap();
}

/// The same for several keys. The caller that asks for all acquires them, and the others are
/// contended by it.
#[tokio::test(start_paused = true)]
async fn callers_behind_a_silent_head_learn_that_one_of_them_got_in() {
    let store = Scripted::new();
    let manager = store.manager();
    let keys = ["a", "b"];
    let mut stuck = pin!(manager.acquire_all(keys, long_wait()));
    store.acquires(&[Fate::Hangs, Fate::Answered]);
    assert!(poll_immediate(stuck.as_mut()).await.is_none());
    let mut waiters = JoinSet::new();
    for _ in 0..6 {
        let manager = manager.clone();
        let options = LockOptions::new().wait(300 * MS);
        waiters.spawn(async move { manager.acquire_all(keys, options).await });
    }
    let (mut got_in, mut contended) = (Vec::new(), 0);
    while let Some(outcome) = waiters.join_next().await {
        match outcome.unwrap() {
            Ok(guard) => got_in.push(guard),
            Err(Error::Contended { .. }) => contended += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!((got_in.len(), contended), (1, 5));
    assert_eq!(store.calls().acquires, 2);
}

/// The caller that asks for all is dropped before its answer comes: another caller asks.
#[tokio::test(start_paused = true)]
async fn callers_behind_a_silent_head_ask_again_if_their_replacement_is_dropped() {
    let store = Scripted::new();
    let (here, there) = (store.manager(), on(&store).build().unwrap());
    let held = there.acquire("a", long_wait()).await.unwrap();
    let mut stuck = pin!(here.acquire("a", long_wait()));
    store.acquires(&[Fate::Hangs, Fate::Hangs, Fate::Answered]);
    assert!(poll_immediate(stuck.as_mut()).await.is_none());
    let first = spawn_acquire(&here, LockOptions::new().wait(280 * MS)).await;
    let mut waiters = Vec::new();
    for _ in 0..5 {
        waiters.push(spawn_acquire(&here, LockOptions::new().wait(300 * MS)).await);
    }
    sleep(600 * MS).await;
    assert_eq!(store.calls().acquires, 3, "the first sends the request for all");
    first.abort();
    for waiter in waiters {
        let (error, _) = waiter.await.unwrap();
        let error = error.unwrap_err();
        assert!(matches!(error, Error::Contended { .. }), "{error:?}");
    }
    assert_eq!(store.calls().acquires, 4);
    held.release().await.unwrap();
}

/// A reader asks in place of another reader, which is gone when the answer comes. A reader that
/// came after a writer of another process does not get in before that writer.
#[tokio::test(start_paused = true)]
async fn readers_of_a_process_do_not_pass_a_writer_by_following_one_another() {
    let store = Scripted::new();
    let other = || on(&store).build().unwrap();
    let (here, there, writes) = (store.manager(), other(), other());
    let reads = || long_wait().mode(Mode::Shared);
    let held = there.acquire("a", long_wait()).await.unwrap();
    let first = spawn_acquire(&here, reads()).await;
    let second = spawn_acquire(&here, reads()).await;
    let writer = spawn_acquire(&writes, long_wait()).await;
    store.acquires(&[Fate::Late(SECOND), Fate::Answered]);
    held.release().await.unwrap();
    let first = acquired_by(first).await.0;
    settle().await;
    first.release().await.unwrap();
    // One asks the store, and the other waits behind it.
    let late = [spawn_acquire(&here, reads()).await, spawn_acquire(&here, reads()).await];
    let second = acquired_by(second).await.0;
    sleep(5 * SECOND).await;
    assert!(!late.iter().any(JoinHandle::is_finished), "the writer was there before");
    second.release().await.unwrap();
    let writer = acquired_by(writer).await.0;
    writer.release().await.unwrap();
    for late in late {
        acquired_by(late).await.0.release().await.unwrap();
    }
}

/// The waiter at the head asks a store that is away; no caller behind it waits longer than its own
/// limit.
///
/// Red without: passing the place on when the head gives up.
#[tokio::test(start_paused = true)]
async fn each_waiter_waits_for_an_unavailable_store_for_its_own_time() {
    let store = Scripted::new();
    let manager = store.manager();
    store.acquires(&[Fate::Refused]);
    let began = Instant::now();
    let waits = [5, 2, 9].map(|wait| (wait * SECOND, LockOptions::new().wait(wait * SECOND)));
    let mut waiters = Vec::new();
    for (wait, options) in waits {
        waiters.push((wait, spawn_acquire(&manager, options).await));
    }
    let last = spawn_acquire(&manager, long_wait()).await;
    for (wait, waiter) in waiters {
        let (error, at) = waiter.await.unwrap();
        assert!(matches!(error, Err(Error::Store { .. })), "{error:?}");
        let waited = at - began;
        assert!(waited >= wait && waited < wait + 100 * MS, "{waited:?}, not {wait:?}");
    }
    store.acquires(&[Fate::Answered]);
    acquired_by(last).await.0.release().await.unwrap();
}

/// The other manager is not shut down.
///
/// Red without: the check of `stopped` beside every acquisition.
#[tokio::test(start_paused = true)]
async fn a_shutdown_notifies_all_waiters_at_once() {
    let store = Scripted::new();
    let (here, there) = (store.manager(), on(&store).build().unwrap());
    let held = there.acquire("a", long_wait()).await.unwrap();
    let mut waiters = Vec::new();
    for _ in 0..10 {
        waiters.push(spawn_acquire(&here, long_wait()).await);
    }
    let other = spawn_acquire(&there, long_wait()).await;
    let began = Instant::now();
    here.shutdown().await;
    for waiter in waiters {
        let (error, at) = waiter.await.unwrap();
        assert!(matches!(error, Err(Error::ShutDown { .. })), "{error:?}");
        assert_eq!(at, began);
    }
    held.release().await.unwrap();
    acquired_by(other).await.0.release().await.unwrap();
    assert_eq!(there.holder("a").await.unwrap(), None);
}
