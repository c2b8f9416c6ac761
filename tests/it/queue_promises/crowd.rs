//! Callers of one process whose wait ends together, or begins and ends at once, or who get in together.

use futures_util::future::join_all;
use lockattr::Error;
use lockattr_tests::Wires;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::*;

/// Several in one moment, and few enough for two cores.
const CROWD: usize = 500;

/// All of them hear that the lock is taken: none that the store is away.
///
/// Red without: what waiters know of each other's questions (`last_word`).
pub(super) async fn callers_whose_wait_ends_together_are_all_contended<T: Topology>(
    case: Case<'_, T>,
) {
    let (first, next) = (case.manager().await, case.manager().await);
    all_are_contended(&first, &next, case.key, T::SHARE_A_PLACE).await;
    case.nothing_left().await;
}

/// `first` holds, and callers of `next` give up together: in each mode, or in the one that has a holder.
pub(super) async fn all_are_contended(
    first: &LockManager,
    next: &LockManager,
    key: &str,
    in_all_modes: bool,
) {
    let modes = [LockOptions::new(), shared(), LockOptions::new().permits(3)];
    let count = if in_all_modes { modes.len() } else { 1 };
    let of_each = modes.into_iter().take(count).enumerate().map(async |(nth, options)| {
        let (key, options) = (format!("{key}_{nth}"), options.wait(Duration::from_secs(2)));
        let holder = first.acquire(&key, LockOptions::new()).await.unwrap();
        let mut crowd = JoinSet::new();
        for _ in 0..CROWD {
            let (next, key, options) = (next.clone(), key.clone(), options.clone());
            crowd.spawn(async move { next.acquire(key, options).await.map(drop) });
        }
        for refused in crowd.join_all().await {
            let error = refused.expect_err("it is held");
            assert!(matches!(error, Error::Contended { holder: Some(_), .. }), "{error}");
        }
        holder.release().await.unwrap();
    });
    join_all(of_each).await;
}

/// `wait = "0s"` asks once, as `retry = 0` does: it is no limit for the answer. Where there is none, that is
/// an outage all the same.
///
/// Red without: the look at the start in `Attempts::cut`.
pub(super) async fn a_call_that_does_not_wait_gets_its_answer_over_a_slow_network<T: Topology>(
    case: Case<'_, T>,
) {
    let wires = Wires::before(case.engine).await;
    let manager = crate::engine_faults::connected(&wires.url()).await;
    // With connections that have been used.
    let warm = manager.acquire(case.key, patient::<T>()).await.unwrap();
    warm.release().await.unwrap();
    wires.delay(Duration::from_millis(400));
    for options in [LockOptions::new().retry(0), LockOptions::new().wait(Duration::ZERO)] {
        manager.acquire(case.key, options).await.unwrap().release().await.unwrap();
    }
    wires.pass().await;
    wires.swallow_replies();
    let once = LockOptions::new().wait(Duration::ZERO);
    let error = manager.acquire(case.key, once).await.unwrap_err();
    assert!(matches!(error, Error::Store { .. }), "{error}");
    wires.pass().await;
    drop(manager);
    case.nothing_left().await;
}

/// Readers of one process that waited for a writer get in together.
///
/// Red without: the head that goes when it was granted a lock that can be shared (`granted` in `asking.rs`).
pub(super) async fn readers_of_one_process_enter_together_when_the_writer_has_gone<T: Topology>(
    case: Case<'_, T>,
) {
    let (first, next) = (case.manager().await, case.manager().await);
    let writer = first.acquire(case.key, LockOptions::new()).await.unwrap();
    let before = of(&case, case.key).await;
    let queued = more_than(&case, case.key, &before);
    readers_enter_together(writer, &next, case.key, queued).await;
    case.nothing_left().await;
}

/// Readers of `next` wait for the writer, one of them in the store's queue once it is `queued`.
pub(super) async fn readers_enter_together(
    writer: LockGuard,
    next: &LockManager,
    key: &'static str,
    queued: impl Future<Output = ()>,
) {
    let mut readers = JoinSet::new();
    for _ in 0..20 {
        let next = next.clone();
        readers.spawn(async move { next.acquire(key, shared().wait(LIMIT)).await.unwrap() });
    }
    queued.await;
    writer.release().await.unwrap();
    let inside = timeout(LIMIT / 3, readers.join_all()).await.expect("all of them get in");
    for guard in inside {
        guard.ensure_held().unwrap();
        guard.release().await.unwrap();
    }
}
