//! The watchdog against a store that hangs, fails, replies late or panics. Mostly on a paused
//! clock.

use std::time::Duration;

use lockattr::{Error, Lease, LockOptions, LostReason};
use lockattr_tests::{capture_events, eventually, in_time};
use tokio::time::{Instant, sleep, timeout};

use crate::support::{Fate, Scripted};

const SECOND: Duration = Duration::from_secs(1);

fn lease(ttl: Duration) -> LockOptions {
    LockOptions::new().ttl(ttl)
}

#[tokio::test(start_paused = true)]
async fn renewals_due_together_share_a_batch() {
    let store = Scripted::new();
    let manager = store.manager();
    let mut guards = Vec::new();
    for n in 0..1_000 {
        guards.push(manager.acquire(format!("k{n}"), lease(3 * SECOND)).await.unwrap());
        if n % 100 == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }
    sleep(60 * SECOND).await;
    let renewals = store.calls().renewals;
    // Each lease is renewed at a third of the TTL, so once a second; each round is one batch.
    assert!((55..=65).contains(&renewals.len()), "{} batches", renewals.len());
    assert!(renewals.iter().all(|size| *size == 1_000), "{renewals:?}");
    assert!(guards.iter().all(|guard| guard.ensure_held().is_ok()));

    drop(guards);
    sleep(SECOND).await;
    let calls = store.calls();
    assert_eq!(calls.releases, [1_000], "dropped guards are released in one batch");
    assert_eq!(calls.renewals.len(), renewals.len(), "and renewed no more");
}

/// The shortest possible leases are renewed at a third of their TTL, and not in a busy loop.
#[tokio::test(start_paused = true)]
async fn short_leases_are_renewed_in_time_and_not_in_a_spin() {
    let store = Scripted::new();
    let manager = store.manager();
    let short = manager.acquire("short", lease(Duration::from_millis(10))).await.unwrap();
    let other = manager.acquire("other", lease(Duration::from_millis(30))).await.unwrap();
    sleep(SECOND).await;
    short.ensure_held().unwrap();
    other.ensure_held().unwrap();
    let batches = store.calls().renewals.len();
    assert!((200..=400).contains(&batches), "{batches} batches in a second");
}

#[tokio::test(start_paused = true)]
async fn a_lease_without_renewal_has_its_whole_ttl_however_long_its_claim_waited() {
    let store = Scripted::new();
    let (first, next) = (store.manager(), store.manager());
    let holder = first.acquire("a", lease(9 * SECOND)).await.unwrap();
    let waiter =
        tokio::spawn(async move { next.acquire("a", lease(9 * SECOND).renew(false)).await });
    // The waiter asks again after three seconds.
    sleep(Duration::from_millis(2_900)).await;
    holder.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    assert!(guard.remaining() > 8 * SECOND, "{:?} are left", guard.remaining());
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_renewal_without_an_answer_is_unknown_not_lost() {
    for fate in [Fate::Refused, Fate::ReplyLost] {
        let store = Scripted::new();
        let guard = store.manager().acquire("a", lease(3 * SECOND)).await.unwrap();
        store.renewals(&[fate, fate, fate, Fate::Answered]);
        sleep(10 * SECOND).await;
        guard.ensure_held().unwrap();
        guard.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_is_retried_while_an_earlier_one_hangs() {
    let store = Scripted::new();
    let guard = store.manager().acquire("a", lease(3 * SECOND)).await.unwrap();
    store.renewals(&[Fate::Hangs, Fate::Answered]);
    sleep(60 * SECOND).await;
    guard.ensure_held().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hanging_store_delays_no_deadline() {
    let store = Scripted::new();
    let manager = store.manager();
    store.renewals(&[Fate::Hangs]);
    let started = Instant::now();
    let first = manager.acquire("first", lease(3 * SECOND)).await.unwrap();
    sleep(SECOND / 2).await;
    let second = manager.acquire("second", lease(3 * SECOND)).await.unwrap();
    timeout(60 * SECOND, first.lost()).await.expect("the loss is reported");
    assert_eq!(started.elapsed().as_millis() / 10, 296, "3 s less 1 % and 2 ms");
    timeout(60 * SECOND, second.lost()).await.expect("the loss is reported");
    assert_eq!(started.elapsed().as_millis() / 10, 346);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_gone_for_good_loses_the_lease_at_its_deadline() {
    let store = Scripted::new();
    let started = Instant::now();
    let guard = store.manager().acquire("a", lease(3 * SECOND)).await.unwrap();
    store.renewals(&[Fate::Refused]);
    timeout(60 * SECOND, guard.lost()).await.expect("the loss is reported");
    let lasted = started.elapsed();
    assert!(lasted > 2 * SECOND && lasted < 3 * SECOND, "{lasted:?}");
    assert!(matches!(guard.ensure_held(), Err(Error::Lost { reason: LostReason::Expired, .. })));
    // Retried more than once before giving up, and not in a busy loop.
    assert!((2..100).contains(&store.calls().renewals.len()));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_loses_no_lease_and_no_release() {
    let events = capture_events();
    let store = Scripted::new();
    let manager = store.manager();
    let guard = manager.acquire("a", lease(3 * SECOND)).await.unwrap();
    store.renewals(&[Fate::Panics, Fate::Answered]);
    sleep(60 * SECOND).await;
    guard.ensure_held().unwrap();
    store.releases(&[Fate::Panics, Fate::Answered]);
    drop(guard);
    sleep(SECOND).await;
    assert_eq!(manager.holder("a").await.unwrap(), None);
    assert_eq!(events.count("the store panicked"), 2);
}

#[tokio::test(start_paused = true)]
async fn an_acquire_whose_answer_came_after_its_lease_expired_fails_and_is_undone() {
    let store = Scripted::new();
    let manager = store.manager();
    store.acquires(&[Fate::Late(2 * SECOND), Fate::Answered]);
    let error = manager.acquire("a", lease(SECOND).retry(0)).await.unwrap_err();
    assert!(matches!(error, Error::Store { ref key, .. } if key == "a"), "{error:?}");
    sleep(SECOND).await;
    let next = manager.acquire("a", lease(SECOND).retry(0)).await.unwrap();
    next.release().await.unwrap();
}

/// Undoing an expired grant must not release the grant that follows it.
#[tokio::test(start_paused = true)]
async fn an_expired_grant_is_adopted_and_not_released_under_the_next_attempt() {
    let store = Scripted::new();
    let manager = store.manager();
    store.acquires(&[Fate::Late(SECOND + SECOND / 10), Fate::Answered]);
    // If the first grant were released, that would happen while the second runs.
    store.releases(&[Fate::Refused, Fate::Answered]);
    let options = lease(SECOND).retry(1).retry_delay(Duration::from_millis(1));
    let guard = manager.acquire("a", options).await.unwrap();
    sleep(10 * SECOND).await;
    guard.ensure_held().unwrap();
    let other = manager.try_acquire("a", lease(SECOND)).await.unwrap();
    assert!(other.is_none(), "two holders");
    assert!(store.calls().releases.is_empty());
}

/// The store may start the lease as soon as the request is sent.
#[tokio::test(start_paused = true)]
async fn a_lease_counts_from_before_the_request() {
    let store = Scripted::new();
    store.acquires(&[Fate::Late(SECOND)]);
    let fixed = lease(3 * SECOND).renew(false);
    let guard = store.manager().acquire("a", fixed).await.unwrap();
    let remaining = guard.remaining();
    assert!(remaining < 2 * SECOND && remaining > SECOND, "{remaining:?}");
}

/// A request without a reply may take effect after a later one was refused, for example from the
/// socket of a frozen server.
#[tokio::test(start_paused = true)]
async fn a_refusal_does_not_settle_an_earlier_attempt_without_an_answer() {
    let store = Scripted::new();
    let (there, manager) = (store.manager(), store.manager());
    let other = there.acquire("a", lease(60 * SECOND)).await.unwrap();
    store.acquires(&[Fate::Deferred(SECOND), Fate::Answered]);
    // The releases: the undo, the other holder's, the undo again, and once more.
    store.releases(&[Fate::Refused, Fate::Answered, Fate::Refused, Fate::Answered]);
    let error = manager.acquire("a", lease(60 * SECOND).retry(1)).await.unwrap_err();
    assert!(matches!(error, Error::Contended { attempts: 2, .. }), "{error:?}");
    // The undo gets no reply and will be retried. Meanwhile the late request is granted.
    sleep(SECOND / 2).await;
    other.release().await.unwrap();
    sleep(SECOND).await;
    assert!(manager.holder("a").await.unwrap().is_some(), "it took effect");
    sleep(10 * SECOND).await;
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn an_acquire_whose_answer_was_lost_is_adopted_by_the_next_attempt() {
    let store = Scripted::new();
    let manager = store.manager();
    store.acquires(&[Fate::ReplyLost, Fate::Answered]);
    // Its own unknown grant must not block it: the second attempt gets the lock.
    let guard = manager.acquire("a", lease(60 * SECOND).retry(1)).await.unwrap();
    assert_eq!(store.calls().acquires, 2);
    guard.release().await.unwrap();
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_gives_up_without_an_answer_is_undone() {
    let store = Scripted::new();
    let manager = store.manager();
    for fate in [Fate::ReplyLost, Fate::Late(30 * SECOND)] {
        store.acquires(&[fate]);
        let options = lease(60 * SECOND).wait(SECOND);
        let error = timeout(10 * SECOND, manager.acquire("a", options)).await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Store { .. }), "{error:?}");
        sleep(SECOND).await;
        assert_eq!(manager.holder("a").await.unwrap(), None, "{fate:?}");
    }
}

/// `wait` also limits the store: a hanging attempt ends at the deadline. A call that does not wait
/// gives the store five seconds for its one reply.
#[tokio::test(start_paused = true)]
async fn a_hanging_store_does_not_outlast_the_wait() {
    let store = Scripted::new();
    store.acquires(&[Fate::Hangs]);
    for wait in [Duration::ZERO, SECOND, 5 * SECOND] {
        let started = Instant::now();
        let error = store.manager().acquire("a", lease(SECOND).wait(wait)).await.unwrap_err();
        assert!(matches!(error, Error::Store { .. }), "{error:?}");
        let longest = if wait.is_zero() { 5 * SECOND } else { wait };
        assert!(started.elapsed() <= longest + SECOND / 2, "{:?}", started.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_is_not_retried_for_longer_than_the_lease_would_have_lasted() {
    let store = Scripted::new();
    let manager = store.manager();
    store.releases(&[Fate::Refused]);
    drop(manager.acquire("a", lease(SECOND)).await.unwrap());
    sleep(10 * SECOND).await;
    let tried = store.calls().releases.len();
    assert!((2..100).contains(&tried), "{tried}");
    sleep(60 * SECOND).await;
    assert_eq!(store.calls().releases.len(), tried);
}

/// The store may have extended the lease, so the longer one must be released.
#[tokio::test(start_paused = true)]
async fn the_lease_of_an_extend_without_an_answer_is_released_too() {
    let store = Scripted::new();
    let manager = store.manager();
    let guard = manager.acquire("a", lease(SECOND)).await.unwrap();
    store.renewals(&[Fate::ReplyLost]);
    assert!(matches!(guard.extend(600 * SECOND).await, Err(Error::Store { .. })));
    store.releases(&[Fate::Refused]);
    drop(guard);
    sleep(60 * SECOND).await;
    assert!(manager.holder("a").await.unwrap().is_some(), "it took effect");
    store.releases(&[Fate::Answered]);
    sleep(2 * SECOND).await;
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// A renewal beside a longer `extend` must not shorten it, and a failed `extend` must not lengthen
/// later renewals.
#[tokio::test(start_paused = true)]
async fn an_extend_that_fails_lengthens_no_later_renewal() {
    let store = Scripted::new();
    let manager = store.manager();
    let guard = manager.acquire("a", lease(SECOND)).await.unwrap();
    store.renewals(&[Fate::Refused, Fate::Answered]);
    assert!(matches!(guard.extend(600 * SECOND).await, Err(Error::Store { .. })));
    sleep(10 * SECOND).await;
    guard.ensure_held().unwrap();
    assert!(guard.remaining() < SECOND);
    assert!(manager.holder("a").await.unwrap().unwrap().remaining.unwrap() <= SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_lock_found_gone_when_it_is_released_in_the_background_is_an_event() {
    let events = capture_events();
    let store = Scripted::new();
    let manager = store.manager();
    let background = lease(SECOND).release(lockattr::Release::Background);
    let guard = manager.acquire("a", background.clone().renew(false)).await.unwrap();
    drop(guard);
    sleep(SECOND).await;
    let expired = "lock lost: its lease expired";
    assert_eq!((events.all().len(), events.count(expired)), (0, 0), "{:?}", events.all());

    let body = async |lease: &Lease| {
        store.restart();
        lease.ensure_held().unwrap();
    };
    manager.with_lock("a", background, body).await.unwrap();
    sleep(SECOND).await;
    assert_eq!(events.count("lock lost: the store no longer has this process as its holder"), 1);
}

/// Each runtime has a task of its own over the same queue, so one that is not driven stops no
/// other.
#[test]
fn an_undriven_runtime_stops_neither_renewals_nor_signals_of_another() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (still, driven) = (runtime(), runtime());
    let store = Scripted::new();
    let manager = store.manager();
    // Leases are renewed after five seconds, and would be kept if that took ten more.
    let first = still.block_on(manager.acquire("still", lease(15 * SECOND))).unwrap();
    driven.block_on(async {
        let second = manager.acquire("driven", lease(15 * SECOND)).await.unwrap();
        for held in [&first, &second] {
            let mut left = held.remaining();
            let renewed = || std::mem::replace(&mut left, held.remaining()) < held.remaining();
            let mut renewed = renewed;
            eventually("renewed", async || renewed()).await;
        }
        // The lease acquired on the idle runtime is renewed as well.
        first.ensure_held().unwrap();
        second.ensure_held().unwrap();
        drop((first, second));
        for key in ["still", "driven"] {
            let free = async || manager.holder(key).await.unwrap().is_none();
            eventually("released", free).await;
        }
    });
}

/// A caller that waits for the loss has a timer of its own: here on a runtime without any watchdog.
#[test]
fn a_loss_is_signalled_where_no_watchdog_is_awake() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (still, driven) = (runtime(), runtime());
    let fixed = LockOptions::new().ttl(Duration::from_millis(50)).renew(false);
    let guard = still.block_on(Scripted::new().manager().acquire("a", fixed)).unwrap();
    driven.block_on(async {
        in_time(guard.lost()).await;
        let body = guard.scope(async { guard.ensure_held() });
        assert!(matches!(body.await, Err(Error::Lost { reason: LostReason::Expired, .. })));
    });
}

/// The release fails at once, while the watchdog sleeps.
#[tokio::test(start_paused = true)]
async fn a_background_release_that_is_refused_at_once_is_tried_again_soon() {
    let store = Scripted::new();
    let manager = store.manager();
    let options = lease(600 * SECOND).renew(false).release(lockattr::Release::Background);
    store.releases(&[Fate::Refused, Fate::Answered]);
    manager.with_lock("a", options, async |_| sleep(SECOND).await).await.unwrap();
    sleep(2 * SECOND).await;
    assert_eq!(manager.holder("a").await.unwrap(), None);
}

/// If the second attempt does not find the lock, the first most likely released it.
#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_was_lost_is_not_reported_as_a_lost_lock() {
    for background in [false, true] {
        let events = capture_events();
        let store = Scripted::new();
        let manager = store.manager();
        store.releases(&[Fate::ReplyLost, Fate::Answered]);
        if background {
            let options = lease(6 * SECOND).release(lockattr::Release::Background);
            manager.with_lock("a", options, async |_| ()).await.unwrap();
        } else {
            drop(manager.acquire("a", lease(6 * SECOND)).await.unwrap());
        }
        sleep(10 * SECOND).await;
        assert_eq!(store.calls().releases.len(), 2);
        assert!(events.is_empty(), "background: {background}: {:?}", events.all());
        assert_eq!(manager.holder("a").await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_release_is_tried_again() {
    let store = Scripted::new();
    let manager = store.manager();
    store.releases(&[Fate::Hangs, Fate::Answered]);
    drop(manager.acquire("a", lease(60 * SECOND).renew(false)).await.unwrap());
    sleep(50 * SECOND).await;
    assert_eq!(manager.holder("a").await.unwrap(), None);
}
