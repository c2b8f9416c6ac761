//! Everything about time, on a paused clock and in memory: deadlines, renewals, patience.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockattr::{Error, Lease, LockManager, LockOptions, LostReason, OnLost};
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn manager() -> LockManager {
    LockManager::builder().url("memory://").build().unwrap()
}

fn fixed(ttl: Duration) -> LockOptions {
    LockOptions::new().ttl(ttl).renew(false)
}

#[tokio::test(start_paused = true)]
async fn a_held_lease_is_renewed_for_as_long_as_it_is_held() {
    let manager = manager();
    let guard = manager.acquire("job", LockOptions::new().ttl(SECOND)).await.unwrap();
    for _ in 0..100 {
        sleep(SECOND).await;
        assert!(guard.remaining() > SECOND / 2);
    }
    guard.release().await.unwrap();
    assert_eq!(manager.holder("job").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_without_renewal_is_lost_at_its_deadline_less_drift() {
    let manager = manager();
    let started = Instant::now();
    let guard = manager.acquire("job", fixed(SECOND)).await.unwrap();
    timeout(3600 * SECOND, guard.lost()).await.expect("the loss is told");
    // 1 % and 2 ms early; the timer's own grain is a millisecond.
    let lasted = started.elapsed();
    assert!((988..=990).contains(&lasted.as_millis()), "{lasted:?}");
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert!(matches!(guard.ensure_held(), Err(Error::Lost { reason: LostReason::Expired, .. })));
    // The store still has it: the deadline is the earlier of the two.
    assert!(manager.holder("job").await.unwrap().is_some());
    assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
    assert_eq!(manager.holder("job").await.unwrap(), None);
}

/// Red without: the comparison in `Lock::is`.
#[tokio::test(start_paused = true)]
async fn a_leaked_lease_does_not_come_back_when_another_has_it() {
    let manager = manager();
    let late = manager.acquire("job", fixed(SECOND)).await.unwrap();
    sleep(2 * SECOND).await;
    let next = manager.acquire("job", LockOptions::new()).await.unwrap();
    assert!(next.fencing_token() > late.fencing_token());
    assert!(matches!(late.extend(SECOND).await, Err(Error::Lost { .. })));
    assert!(matches!(late.release().await, Err(Error::Lost { .. })));
    next.ensure_held().unwrap();
    next.release().await.expect("a stale release freed the successor");
}

#[tokio::test(start_paused = true)]
async fn max_hold_ends_a_renewed_lease() {
    let manager = manager();
    let options = LockOptions::new().ttl(SECOND).max_hold(5 * SECOND);
    let started = Instant::now();
    let guard = manager.acquire("job", options).await.unwrap();
    timeout(3600 * SECOND, guard.lost()).await.expect("the loss is told");
    let lasted = started.elapsed();
    assert!(lasted > 4 * SECOND && lasted <= 5 * SECOND, "{lasted:?}");
    assert!(matches!(guard.ensure_held(), Err(Error::Lost { reason: LostReason::MaxHold, .. })));
    sleep(SECOND / 10).await;
    assert_eq!(manager.holder("job").await.unwrap(), None, "the store ends it too");
}

/// However long it is: the drift is that of the last lease, not of the whole time.
#[tokio::test(start_paused = true)]
async fn a_long_max_hold_is_not_cut_short() {
    let hours = 10 * 3600 * SECOND;
    let options = LockOptions::new().ttl(10 * SECOND).max_hold(hours);
    let started = Instant::now();
    manager().acquire("job", options).await.unwrap().lost().await;
    let lasted = started.elapsed();
    assert!(lasted > hours - SECOND && lasted <= hours, "{lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn extend_lengthens_and_never_shortens() {
    let manager = manager();
    let guard = manager.acquire("job", fixed(SECOND)).await.unwrap();
    guard.extend(10 * SECOND).await.unwrap();
    guard.extend(SECOND).await.unwrap();
    sleep(8 * SECOND).await;
    guard.ensure_held().unwrap();
    assert!(matches!(guard.extend(Duration::ZERO).await, Err(Error::InvalidOptions(_))));
    sleep(2 * SECOND).await;
    assert!(guard.ensure_held().is_err());
}

#[tokio::test(start_paused = true)]
async fn extend_does_not_go_past_max_hold() {
    let options = LockOptions::new().ttl(SECOND).max_hold(3 * SECOND);
    let guard = manager().acquire("job", options).await.unwrap();
    guard.extend(60 * SECOND).await.unwrap();
    assert!(guard.remaining() <= 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn retry_is_a_number_of_retries() {
    let manager = manager();
    let _held = manager.acquire("busy", LockOptions::new()).await.unwrap();
    for (retries, expected) in [(0, 1), (1, 2), (10, 11)] {
        let started = Instant::now();
        let error = manager.acquire("busy", LockOptions::new().retry(retries)).await.unwrap_err();
        let Error::Contended { key, attempts, waited, holder } = error else {
            panic!("{error:?}");
        };
        assert_eq!((key.as_str(), attempts), ("busy", expected));
        assert_eq!(waited, started.elapsed());
        assert!(waited >= 50 * retries * Duration::from_millis(1), "half of each pause is sure");
        assert!(waited <= 102 * retries * Duration::from_millis(1), "{waited:?}");
        assert_eq!(holder.unwrap().process, Some(std::process::id()));
    }
}

#[tokio::test(start_paused = true)]
async fn wait_is_a_deadline() {
    let manager = manager();
    let _held = manager.acquire("busy", LockOptions::new()).await.unwrap();
    for wait in [0, 1, 70, 3_000] {
        let wait = Duration::from_millis(wait);
        let error = manager.acquire("busy", LockOptions::new().wait(wait)).await.unwrap_err();
        let Error::Contended { waited, .. } = error else { panic!("{error:?}") };
        assert!(waited >= wait && waited <= wait + Duration::from_millis(2), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_retry_and_wait_the_first_to_end_counts() {
    let manager = manager();
    let _held = manager.acquire("busy", LockOptions::new()).await.unwrap();
    let few = LockOptions::new().retry(2).wait(60 * SECOND);
    let error = manager.acquire("busy", few).await.unwrap_err();
    assert!(matches!(error, Error::Contended { attempts: 3, .. }));
    let short = LockOptions::new().retry(1_000_000).wait(SECOND);
    let error = manager.acquire("busy", short).await.unwrap_err();
    assert!(matches!(error, Error::Contended { attempts: 10..=21, .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn with_neither_the_managers_wait_counts() {
    let manager = LockManager::builder().url("memory://?wait=2s").build().unwrap();
    let _held = manager.acquire("busy", LockOptions::new()).await.unwrap();
    let error = manager.acquire("busy", LockOptions::new()).await.unwrap_err();
    let Error::Contended { waited, .. } = error else { panic!("{error:?}") };
    assert_eq!(waited.as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_gets_in_when_the_holder_is_done() {
    let manager = manager();
    let held = manager.acquire("busy", LockOptions::new()).await.unwrap();
    let waiter = {
        let manager = manager.clone();
        tokio::spawn(async move { manager.acquire("busy", LockOptions::new()).await })
    };
    sleep(SECOND).await;
    held.release().await.unwrap();
    assert!(waiter.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_lost_body_is_dropped_and_its_key_is_free_for_others() {
    struct Dropped<'a>(&'a std::cell::Cell<bool>);
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    let manager = manager();
    let dropped = std::cell::Cell::new(false);
    let body = async |_: &Lease| {
        let _dropped = Dropped(&dropped);
        sleep(60 * SECOND).await;
    };
    let started = Instant::now();
    let error = manager.with_lock("job", fixed(SECOND), body).await.unwrap_err();
    assert!(matches!(error, Error::Lost { reason: LostReason::Expired, .. }));
    assert!(dropped.get() && started.elapsed() < SECOND);
    assert_eq!(manager.holder("job").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn on_lost_error_lets_the_body_finish_and_ignore_returns_its_value() {
    let manager = manager();
    let body = async |_: &Lease| {
        sleep(3 * SECOND).await;
        17
    };
    let started = Instant::now();
    let options = fixed(SECOND).on_lost(OnLost::Error);
    let error = manager.with_lock("job", options, body).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }));
    assert_eq!(started.elapsed().as_secs(), 3);

    let options = fixed(SECOND).on_lost(OnLost::Ignore);
    assert_eq!(manager.with_lock("job", options, body).await.unwrap(), 17);
}

/// A body that never awaits cannot be dropped; what it returns is still no success. On the real
/// clock, because the body keeps the thread while its lease runs out.
#[tokio::test]
async fn a_body_that_overran_without_awaiting_is_lost_not_ok() {
    let manager = manager();
    let ttl = Duration::from_millis(20);
    let body = async |_: &Lease| {
        spin(2 * ttl);
        17
    };
    let error = manager.with_lock("job", fixed(ttl), body).await.unwrap_err();
    assert!(matches!(error, Error::Lost { reason: LostReason::Expired, .. }));
    let body = async |_: &Lease| spin(2 * ttl);
    let error = manager.with_lock("job", LockOptions::new().ttl(ttl), body).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "the watchdog had no thread to renew on");
}

/// A process that slept past its deadline wakes up with everything ready at once: its timers, and
/// what the body waited for. The body must not be the first to run.
#[tokio::test]
async fn no_line_after_the_next_await_runs_as_holder_once_the_lease_has_lapsed() {
    let manager = manager();
    let ttl = Duration::from_millis(50);
    let (started, starts) = tokio::sync::oneshot::channel();
    let (go, goes) = tokio::sync::oneshot::channel::<()>();
    let ran = Arc::new(AtomicBool::new(false));
    let job = {
        let ran = ran.clone();
        let body = async move |_: &Lease| {
            started.send(()).unwrap();
            goes.await.unwrap();
            ran.store(true, Ordering::SeqCst);
        };
        tokio::spawn(
            async move { manager.with_lock("job", LockOptions::new().ttl(ttl), body).await },
        )
    };
    starts.await.unwrap();
    spin(2 * ttl);
    go.send(()).unwrap();
    assert!(matches!(job.await.unwrap(), Err(Error::Lost { .. })));
    assert!(!ran.load(Ordering::SeqCst), "the body went on");
}

/// Keeps the thread busy, as a computation does.
fn spin(time: Duration) {
    let started = Instant::now();
    while started.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_signals_waits_and_releases() {
    let manager = manager();
    let job = {
        let manager = manager.clone();
        tokio::spawn(async move {
            manager.with_lock("job", LockOptions::new(), async |_| sleep(600 * SECOND).await).await
        })
    };
    sleep(SECOND).await;
    let stubborn = manager.acquire("stubborn", LockOptions::new()).await.unwrap();
    let started = Instant::now();
    manager.shutdown().await;
    // The body stopped at once; the guard nobody let go of was waited for, then released.
    assert!(matches!(job.await.unwrap(), Err(Error::Lost { reason: LostReason::ShutDown, .. })));
    assert_eq!(started.elapsed().as_secs(), 10);
    assert!(stubborn.ensure_held().is_err());
    for key in ["job", "stubborn"] {
        assert_eq!(manager.holder(key).await.unwrap(), None);
    }
    let refused = manager.acquire("job", LockOptions::new()).await;
    assert!(matches!(refused, Err(Error::ShutDown { .. })));
    manager.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_with_nothing_held_takes_no_time() {
    let manager = manager();
    drop(manager.acquire("job", LockOptions::new()).await.unwrap());
    let started = Instant::now();
    manager.shutdown().await;
    assert!(started.elapsed() < SECOND);
}
