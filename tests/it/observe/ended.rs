//! The counts of ended holds by reason, with the gauge back at zero.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use lockattr::{Error, LockManager, LockOptions, LostReason, OnLost, Release, distributed_lock};
use tokio::time::{sleep, timeout};

use super::counted::assert_back_to_zero;
use super::metrics::{Metrics, of, recorded};
use super::{MINUTE, SECOND, memory, sell};
use crate::support::{Fate, Scripted};

/// Holds the lock for a minute, unless the lease ends first.
#[distributed_lock(key = "job", manager = manager, ttl = "3s", renew = renew, max_hold = max_hold)]
async fn job(manager: &LockManager, renew: bool, max_hold: Duration) -> Result<(), Error> {
    sleep(MINUTE).await;
    Ok(())
}

#[track_caller]
fn check(metrics: &Metrics, lost: &Result<(), Error>, reason: LostReason, held: &str, time: f64) {
    assert!(matches!(lost, Err(Error::Lost { reason: was, .. }) if *was == reason), "{lost:?}");
    let expected = vec![(format!("job,{held}"), vec![time])];
    assert_eq!(metrics.times("lockattr.hold.duration"), expected);
    assert_eq!(metrics.counts("lockattr.acquisitions"), of(&[("job,acquired", 1)]));
    assert_back_to_zero(metrics);
}

/// Red without: `Err(reason) => named_reason(reason)` in the drop of `HoldObservation`.
#[test]
fn a_lease_that_ran_out_ends_as_expired() {
    recorded(async |metrics| {
        let lost = job(&memory(), false, MINUTE * 2).await;
        check(metrics, &lost, LostReason::Expired, "expired", 2.97);
    });
}

/// Red without: checking the hold in the drop of `HoldObservation`. No release reports the loss.
#[test]
fn an_expired_lease_ends_as_expired_if_the_release_is_not_awaited() {
    recorded(async |metrics| {
        let manager = memory();
        let fixed = || LockOptions::new().template("job").ttl(SECOND).renew(false);
        let guard = manager.acquire("job", fixed()).await.unwrap();
        sleep(SECOND * 2).await;
        drop(guard);
        let unseen = fixed().release(Release::Background).on_lost(OnLost::Ignore);
        manager.with_lock("job", unseen, async |_| sleep(SECOND * 2).await).await.unwrap();
        let expired = of(&[("job,expired", vec![2.0, 2.0])]);
        assert_eq!(metrics.times("lockattr.hold.duration"), expired);
        assert_back_to_zero(metrics);
    });
}

#[test]
fn a_hold_past_its_limit_ends_as_max_hold() {
    recorded(async |metrics| {
        let lost = job(&memory(), true, SECOND * 5).await;
        check(metrics, &lost, LostReason::MaxHold, "max_hold", 4.97);
        let renewals = metrics.counts("lockattr.renewals");
        assert!(matches!(&renewals[..], [(name, 1..)] if name == "renewed"), "{renewals:?}");
    });
}

/// The store forgets the lock, and the first renewal finds that out.
#[test]
fn a_lock_that_the_store_has_no_more_ends_as_taken() {
    recorded(async |metrics| {
        let store = Scripted::new();
        let manager = store.manager();
        let forgets = async {
            sleep(SECOND / 2).await;
            store.restart();
        };
        let (lost, ()) = tokio::join!(job(&manager, true, MINUTE * 2), forgets);
        check(metrics, &lost, LostReason::Taken, "taken", 1.0);
        assert_eq!(metrics.counts("lockattr.renewals"), of(&[("not_held", 1)]));
    });
}

/// Red without: `released` in `LockGuard::release`. Only the reply to the release reports it.
#[test]
fn a_lock_that_turns_out_to_be_gone_when_it_is_released_ends_as_taken() {
    recorded(async |metrics| {
        let store = Scripted::new();
        let manager = store.manager();
        let guard = manager.acquire("job", LockOptions::new().template("job")).await.unwrap();
        store.restart();
        let released = guard.release().await;
        check(metrics, &released, LostReason::Taken, "taken", 0.0);
        assert_eq!(metrics.counts("lockattr.releases"), of(&[("not_held", 1)]));
    });
}

#[test]
fn a_hold_that_a_shutdown_ends_is_counted_as_such() {
    recorded(async |metrics| {
        let manager = memory();
        let ends = async {
            sleep(SECOND).await;
            manager.shutdown().await;
        };
        let (lost, ()) = tokio::join!(job(&manager, true, MINUTE * 2), ends);
        check(metrics, &lost, LostReason::ShutDown, "shut_down", 1.0);
    });
}

/// A guard that is dropped, a body that panics and one that is dropped: each held the lock for a
/// second.
#[test]
fn however_a_hold_ends_it_is_no_longer_counted_as_held() {
    recorded(async |metrics| {
        let manager = memory();
        let options = || LockOptions::new().template("job");
        let guard = manager.acquire("job", options()).await.unwrap();
        sleep(SECOND).await;
        drop(guard);

        let panics = manager.with_lock("job", options(), async |_| -> () {
            sleep(SECOND).await;
            panic!("a bug in the body");
        });
        assert!(AssertUnwindSafe(panics).catch_unwind().await.is_err());

        let dropped = manager.with_lock("job", options(), async |_| sleep(MINUTE).await);
        assert!(timeout(SECOND, dropped).await.is_err());
        assert_back_to_zero(metrics);
        let held = of(&[("job,released", vec![1.0, 1.0, 1.0])]);
        assert_eq!(metrics.times("lockattr.hold.duration"), held);
    });
}

/// Red without: `observe::renewal("unknown")` or `observe::release("unknown")`. They are an
/// operator's first sign that the store is unavailable.
#[test]
fn renewals_and_releases_that_got_no_answer_are_counted() {
    recorded(async |metrics| {
        let store = Scripted::new();
        store.renewals(&[Fate::Refused, Fate::Answered]);
        // The body's release, and the watchdog's first attempt.
        store.releases(&[Fate::Refused, Fate::Refused, Fate::Answered]);
        let manager = store.manager();
        sell(&manager, 1, SECOND * 4).await.unwrap();
        manager.shutdown().await;
        let renewals = metrics.counts("lockattr.renewals");
        assert!(
            matches!(&renewals[..], [(renewed, 1..), (unknown, 1)]
            if renewed == "renewed" && unknown == "unknown"),
            "{renewals:?}"
        );
        let releases = of(&[("released", 1), ("unknown", 2)]);
        assert_eq!(metrics.counts("lockattr.releases"), releases);
    });
}
