//! Callers of one process whose waits end together, begin and end at once, or succeed together.

use futures_util::FutureExt;
use futures_util::future::join_all;
use lockattr::Error;
use lockattr_tests::{StoppedClock, Wires, eventually, in_time};
use tokio::task::JoinSet;

use super::*;

/// Several callers at once, and few enough for two cores: over ZooKeeper each caller that shares a
/// lock has an entry, and reads those of all others.
const CROWD: usize = 60;

/// The wait of callers that give up: as long as possible, so that each has an answer before, but shorter than the five
/// seconds after which the head of a queue asks again. A request that is under way when the wait ends may be an outage.
const WAIT: Duration = Duration::from_secs(4);

/// All callers report that the lock is contended, and none that the store is unavailable: a request
/// of each caller in its last moment would get its reply too late.
pub(super) async fn callers_whose_wait_ends_together_are_all_contended<T: Topology>(
    case: Case<'_, T>,
) {
    let wires = Wires::before(case.engine).await;
    let url = wires.url_with("retry_delay=1h");
    let (first, next) = (case.manager().await, crate::engine_faults::connected(&url).await);
    // The round trip takes longer than a request may take that is sent when the wait is over.
    let slow = || wires.delay(Duration::from_millis(150));
    all_are_contended(&first, &next, case.key, slow).await;
    wires.pass().await;
    case.nothing_left().await;
}

/// `first` holds the lock, and callers of `next` give up together over a network that becomes slow.
/// Runs in each mode.
pub(super) async fn all_are_contended(
    first: &LockManager,
    next: &LockManager,
    key: &str,
    becomes_slow: impl FnOnce(),
) {
    let modes = [LockOptions::new(), shared(), LockOptions::new().permits(3)];
    let (mut held, mut ways) = (Vec::new(), Vec::new());
    for (nth, options) in modes.into_iter().enumerate() {
        let key = format!("{key}_{nth}");
        held.push(first.acquire(&key, LockOptions::new()).await.unwrap());
        // Opens the connections before the network becomes slow.
        let hasty = options.clone().wait(Duration::from_millis(500));
        eventually("the next process knows the holder", async || {
            matches!(next.acquire(&key, hasty.clone()).await, Err(Error::Contended { .. }))
        })
        .await;
        ways.push((key, options.wait(WAIT)));
    }
    becomes_slow();
    let gives_up = ways.into_iter().map(async |(key, options)| {
        let mut crowd = JoinSet::new();
        for _ in 0..CROWD {
            let (next, key, options) = (next.clone(), key.clone(), options.clone());
            crowd.spawn(async move { next.acquire(key, options).await.map(drop) });
        }
        let refused = in_time(crowd.join_all()).await;
        let others = |refused: &Result<(), Error>| !matches!(refused, Err(Error::Contended { .. }));
        let others: Vec<_> = refused.into_iter().filter(others).collect();
        let first = others.first();
        assert!(others.is_empty(), "{options:?}: {} of {CROWD}, the first {first:?}", others.len());
    });
    join_all(gives_up).await;
    for holder in held {
        holder.release().await.unwrap();
    }
}

/// The asker gives up, and the other caller asks in its last moment, over a network slower than
/// that. It reports what both already knew.
pub(super) async fn a_caller_whose_request_is_sent_just_before_its_deadline_is_contended<
    T: Topology,
>(
    case: Case<'_, T>,
) {
    let wires = Wires::before(case.engine).await;
    let url = wires.url_with("retry_delay=1h");
    let (first, next) = (case.manager().await, crate::engine_faults::connected(&url).await);
    let holder = first.acquire(case.key, LockOptions::new()).await.unwrap();
    let waits = |wait| next.acquire(case.key, LockOptions::new().wait(wait));
    assert!(waits(Duration::from_millis(500)).await.is_err(), "it is held");
    wires.delay(Duration::from_millis(150));
    let (asks, takes_over) = tokio::join!(waits(WAIT), waits(WAIT + Duration::from_millis(100)));
    for refused in [asks, takes_over] {
        let error = refused.expect_err("it is held");
        assert!(matches!(error, Error::Contended { .. }), "{error}");
    }
    holder.release().await.unwrap();
    wires.pass().await;
    case.nothing_left().await;
}

/// `wait = "0s"` asks once, as `retry = 0` does. It does not limit how long the reply may take. A
/// missing reply is still an outage.
pub(super) async fn a_call_that_does_not_wait_gets_its_answer_over_a_slow_network<T: Topology>(
    case: Case<'_, T>,
) {
    let wires = Wires::before(case.engine).await;
    let manager = crate::engine_faults::connected(&wires.url()).await;
    // Opens and uses the connections first.
    manager.acquire(case.key, LockOptions::new()).await.unwrap().release().await.unwrap();
    wires.delay(Duration::from_millis(250));
    for options in [LockOptions::new().retry(0), LockOptions::new().wait(Duration::ZERO)] {
        // The answer may take some seconds, and no longer.
        eventually("it gets its answer", async || {
            match manager.acquire(case.key, options.clone()).await {
                Ok(guard) => guard.release().await.is_ok(),
                Err(_) => false,
            }
        })
        .await;
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

/// Readers of one process that waited for a writer enter together.
pub(super) async fn readers_of_one_process_enter_together_when_the_writer_has_gone<T: Topology>(
    case: Case<'_, T>,
) {
    let (first, next) = (case.manager().await, case.manager().await);
    let writer = first.acquire(case.key, LockOptions::new()).await.unwrap();
    let before = of(&case, case.key).await;
    // From then on, no timer helps them.
    let queued = more_than(&case, case.key, &before).map(|()| StoppedClock::new());
    readers_enter_together(writer, &next, case.key, queued).await;
    case.nothing_left().await;
}

/// Readers of `next` wait for the writer. `queued` completes once one of them is in the store's
/// queue, with a clock for the rest.
pub(super) async fn readers_enter_together<C>(
    writer: LockGuard,
    next: &LockManager,
    key: &'static str,
    queued: impl Future<Output = C>,
) {
    let mut readers = JoinSet::new();
    for _ in 0..20 {
        let next = next.clone();
        readers.spawn(async move { next.acquire(key, shared()).await.unwrap() });
    }
    let clock = queued.await;
    writer.release().await.unwrap();
    let inside = in_time(readers.join_all()).await;
    drop(clock);
    let tokens: BTreeSet<_> = inside.iter().map(|guard| guard.fencing_token()).collect();
    assert_eq!(tokens.len(), inside.len(), "each has a token of its own");
    for guard in inside {
        guard.ensure_held().unwrap();
        guard.release().await.unwrap();
    }
}
