//! Deadlines, renewals and wait budgets, on a paused clock and in memory.

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions, LostReason};
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
    timeout(3600 * SECOND, guard.lost()).await.expect("the loss is reported");
    // 1 % and 2 ms early. The timer's resolution is a millisecond.
    let lasted = started.elapsed();
    assert!((988..=990).contains(&lasted.as_millis()), "{lasted:?}");
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert!(matches!(guard.ensure_held(), Err(Error::Lost { reason: LostReason::Expired, .. })));
    // The store still has the lock: the holder's deadline is the earlier one.
    assert!(manager.holder("job").await.unwrap().is_some());
    assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
    assert_eq!(manager.holder("job").await.unwrap(), None);
}

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
    timeout(3600 * SECOND, guard.lost()).await.expect("the loss is reported");
    let lasted = started.elapsed();
    assert!(lasted > 4 * SECOND && lasted <= 5 * SECOND, "{lasted:?}");
    assert!(matches!(guard.ensure_held(), Err(Error::Lost { reason: LostReason::MaxHold, .. })));
    sleep(SECOND / 10).await;
    assert_eq!(manager.holder("job").await.unwrap(), None, "the store ends it too");
}

/// However long `max_hold` is, the drift is that of the last lease, not of the whole time.
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
    assert!(matches!(error, Error::Contended { attempts: 1..=21, .. }), "{error:?}");
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
