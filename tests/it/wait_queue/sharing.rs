//! Shared locks and permits, and which mode may be taken inside which.

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions, Mode};
use tokio::time::{Instant, sleep};

use super::{Order, SECOND, acquired_by, long_wait, on, spawn_acquire};
use crate::support::Scripted;

fn shared() -> LockOptions {
    long_wait().mode(Mode::Shared)
}

fn permits(count: u32) -> LockOptions {
    long_wait().permits(count)
}

/// Red without: `Sharing` in `Locks::admits`.
#[tokio::test(start_paused = true)]
async fn shared_holds_overlap_and_an_exclusive_hold_excludes_all() {
    let store = Scripted::new();
    let (here, there) = (store.manager(), on(&store).build().unwrap());
    let one = here.acquire("a", shared()).await.unwrap();
    let two = here.acquire("a", shared()).await.unwrap();
    let three = there.acquire("a", shared()).await.unwrap();
    let alone = spawn_acquire(&there, long_wait()).await;
    let behind = spawn_acquire(&here, shared()).await;
    for guard in [one, two, three] {
        sleep(SECOND).await;
        assert!(!alone.is_finished() && !behind.is_finished());
        guard.release().await.unwrap();
    }
    let alone = acquired_by(alone).await.0;
    assert!(!behind.is_finished());
    sleep(60 * SECOND).await;
    alone.ensure_held().unwrap();
    alone.release().await.unwrap();
    acquired_by(behind).await.0.release().await.unwrap();
    assert_eq!(here.holder("a").await.unwrap(), None);
}

/// Red without: the count in `Locks::admits`.
#[tokio::test(start_paused = true)]
async fn permits_admit_their_number_of_callers() {
    let store = Scripted::new();
    let managers = [store.manager(), on(&store).build().unwrap()];
    let mut inside = Vec::new();
    let mut waiting = Vec::new();
    for n in 0..6 {
        let pending = spawn_acquire(&managers[n % 2], permits(3)).await;
        if n < 3 {
            inside.push(acquired_by(pending).await.0);
        } else {
            assert!(!pending.is_finished());
            waiting.push(pending);
        }
    }
    let mut tokens: Vec<_> = inside.iter().map(|guard| guard.fencing_token()).collect();
    for (guard, next) in inside.into_iter().zip(waiting) {
        guard.release().await.unwrap();
        let next = acquired_by(next).await.0;
        tokens.push(next.fencing_token());
        std::mem::forget(next);
    }
    assert!(tokens.is_sorted_by(|one, next| one < next));
}

/// Red without: the first arm of `check_sharing`.
#[tokio::test(start_paused = true)]
async fn inside_an_exclusive_hold_every_mode_enters() {
    let manager = Scripted::new().manager();
    let outer = manager.acquire("a", LockOptions::new()).await.unwrap();
    for options in [long_wait(), shared(), permits(2)] {
        let inner = outer.scope(manager.acquire("a", options)).await.unwrap();
        assert_eq!((inner.depth(), inner.fencing_token()), (2, outer.fencing_token()));
    }
}

/// The error for `inner` inside `outer`, if any, and the keys that stay locked.
async fn refusal(manager: &LockManager, outer: LockOptions, inner: LockOptions) -> Option<String> {
    let outer = manager.acquire("a", outer).await.unwrap();
    let began = Instant::now();
    let outcome = match outer.scope(manager.acquire("a", inner)).await {
        Ok(guard) => {
            assert_eq!(guard.depth(), 2);
            None
        }
        Err(Error::InvalidOptions(sentence)) => Some(sentence),
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!(began.elapsed(), Duration::ZERO);
    outer.release().await.unwrap();
    outcome
}

/// The inner lock could never be granted: it would wait for its own chain.
///
/// Red without: `check_sharing`.
#[tokio::test(start_paused = true)]
async fn inside_a_shared_hold_only_the_same_way_of_sharing_enters() {
    let manager = Scripted::new().manager();
    let words = |options: &LockOptions| {
        ["`mode = exclusive`", "`mode = shared`", "`permits`"][[long_wait(), shared(), permits(2)]
            .iter()
            .position(|other| format!("{other:?}") == format!("{options:?}"))
            .expect("one of the three")]
    };
    let [x, s, p] = [long_wait(), shared(), permits(2)];
    let refused = [(&s, &x), (&s, &p), (&p, &x), (&p, &s)];
    for (outer, inner) in refused {
        let (with_outer, with_inner) = (words(outer), words(inner));
        let sentence = format!(
            "this call chain holds `a` with {with_outer}, so a nested call can never acquire it \
             with {with_inner}: acquire it with {with_inner} where the chain begins"
        );
        assert_eq!(refusal(&manager, outer.clone(), inner.clone()).await, Some(sentence));
    }
    for same in [&s, &p] {
        assert_eq!(refusal(&manager, same.clone(), same.clone()).await, None);
    }
    // A shared entry into an exclusive hold is only shared.
    let outer = manager.acquire("a", long_wait()).await.unwrap();
    let entry = outer.scope(manager.acquire("a", shared())).await.unwrap();
    let inner = entry.scope(manager.acquire("a", long_wait())).await;
    assert!(matches!(inner, Err(Error::InvalidOptions(_))), "{inner:?}");
}

/// Red without: the order among shared entries.
#[tokio::test(start_paused = true)]
async fn inside_an_exclusive_hold_shared_calls_overlap() {
    let manager = Scripted::new().manager();
    let outer = manager.acquire("a", LockOptions::new()).await.unwrap();
    let branch = async |options: LockOptions, time: u32| {
        let guard = manager.acquire("a", options).await.unwrap();
        let began = Instant::now();
        sleep(time * SECOND).await;
        drop(guard);
        (began, Instant::now())
    };
    let began = Instant::now();
    let (one, two, alone, three) = outer
        .scope(async {
            tokio::join!(
                branch(shared(), 3),
                branch(shared(), 2),
                branch(long_wait(), 1),
                branch(shared(), 1),
            )
        })
        .await;
    assert_eq!((one.0, two.0), (began, began), "together");
    assert_eq!(alone.0, one.1, "alone");
    assert_eq!(three.0, alone.1, "and in the order of the calls");
}

/// Readers and exclusive callers join the same wait queue.
#[tokio::test(start_paused = true)]
async fn exclusive_and_shared_callers_of_one_process_acquire_in_arrival_order() {
    let store = Scripted::new();
    let manager = store.manager();
    let held = manager.acquire("a", long_wait()).await.unwrap();
    let order = Order::default();
    let reader = spawn_acquire(&manager, shared()).await;
    order.spawn_holder(&manager, "x", SECOND).await;
    order.spawn_holder(&manager, "x", SECOND).await;
    sleep(SECOND).await;
    let released = Instant::now();
    held.release().await.unwrap();
    let (reader, at) = acquired_by(reader).await;
    assert_eq!(at, released);
    assert_eq!(order.names(), "");
    reader.release().await.unwrap();
    sleep(10 * SECOND).await;
    assert_eq!(order.names(), "xx");
    assert_eq!(store.calls().acquires, 1);
    assert_eq!(manager.holder("a").await.unwrap(), None);
}
