//! A lease that is lost while the body runs: whether the call returns the loss or the body's
//! result.

use std::cell::Cell;

use lockattr::{Error, Lease, LockManager, LockOptions, LostReason, distributed_lock};
use lockattr_tests::{Events, capture_events};
use tokio::time::{Instant, sleep};
use tracing::Level;

use super::{End, Failure, SECOND};
use crate::support::Scripted;

fn manager() -> LockManager {
    LockManager::builder().url("memory://").build().unwrap()
}

fn is_lost(outcome: &Result<u32, Failure>, why: LostReason) -> bool {
    matches!(outcome, Err(Failure::Lock(Error::Lost { key, reason })) if key == "job" && *reason == why)
}

/// Returns whether there is one event for each of so many losses, whatever `on_lost` says, and no other.
fn reported_once_each(events: &Events, losses: usize) -> bool {
    let all = events.all();
    let is_loss = |text: &str| {
        let parts = [
            "lock lost: ",
            "lockattr.key=\"job\"",
            "lockattr.template=\"job\"",
            "error.type=\"lost.",
        ];
        parts.iter().all(|part| text.contains(part))
    };
    all.len() == losses
        && all.iter().all(|event| event.level == Level::WARN && is_loss(&event.text))
}

/// A body that a test defines.
type Body<'a> = std::pin::Pin<Box<dyn Future<Output = Result<u32, Failure>> + 'a>>;

/// A function under the lock, with these settings.
macro_rules! locked {
    ($name:ident, $($settings:tt)*) => {
        #[distributed_lock(key = "job", manager = manager, ttl = "1s", $($settings)*)]
        async fn $name(manager: &LockManager, body: Body<'_>) -> Result<u32, Failure> {
            body.await
        }
    };
}

locked!(fixed_cancel, renew = false, on_lost = cancel);
locked!(fixed_error, renew = false, on_lost = error);
locked!(fixed_ignore, renew = false, on_lost = ignore);
locked!(capped_cancel, max_hold = "1500ms");
locked!(capped_error, max_hold = "1500ms", on_lost = error);
locked!(capped_ignore, max_hold = "1500ms", on_lost = ignore);

/// A body that outlasts every lease here and records that it ran to its end.
fn long(ran: &Cell<bool>, end: End) -> Body<'_> {
    ran.set(false);
    Box::pin(async move {
        sleep(5 * SECOND).await;
        ran.set(true);
        end.outcome()
    })
}

#[tokio::test(start_paused = true)]
async fn a_body_that_still_runs_at_the_loss_is_treated_as_on_lost_says() {
    for end in End::BOTH {
        let (manager, ran) = (manager(), Cell::new(false));
        let events = capture_events();
        let started = Instant::now();
        let outcome = fixed_cancel(&manager, long(&ran, end)).await;
        assert!(is_lost(&outcome, LostReason::Expired), "{outcome:?}");
        assert!(!ran.get() && started.elapsed() < SECOND, "notified no later than the deadline");

        let outcome = fixed_error(&manager, long(&ran, end)).await;
        assert!(is_lost(&outcome, LostReason::Expired), "{outcome:?}");
        assert!(ran.get(), "the body must finish");
        assert!(reported_once_each(&events, 2), "{:?}", events.all());

        let outcome = fixed_ignore(&manager, long(&ran, end)).await;
        assert!(ran.get() && end.is(&outcome), "{outcome:?}");
        assert!(reported_once_each(&events, 3), "{:?}", events.all());
        assert_eq!(manager.holder("job").await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_exceeds_max_hold_is_treated_as_on_lost_says() {
    for end in End::BOTH {
        let (manager, ran) = (manager(), Cell::new(false));
        let events = capture_events();
        let started = Instant::now();
        let outcome = capped_cancel(&manager, long(&ran, end)).await;
        assert!(is_lost(&outcome, LostReason::MaxHold), "{outcome:?}");
        let lasted = started.elapsed();
        assert!(!ran.get() && lasted > SECOND && lasted <= SECOND * 3 / 2, "{lasted:?}");

        let outcome = capped_error(&manager, long(&ran, end)).await;
        assert!(is_lost(&outcome, LostReason::MaxHold), "{outcome:?}");
        assert!(ran.get(), "the body must finish");
        assert!(reported_once_each(&events, 2), "{:?}", events.all());

        let outcome = capped_ignore(&manager, long(&ran, end)).await;
        assert!(ran.get() && end.is(&outcome), "{outcome:?}");
        assert!(reported_once_each(&events, 3), "{:?}", events.all());
        assert_eq!(manager.holder("job").await.unwrap(), None);
    }
}

/// The body ended in time. Only the release finds out that the lock had been taken away.
#[tokio::test(start_paused = true)]
async fn a_loss_that_only_the_release_detects_is_reported() {
    for end in End::BOTH {
        let store = Scripted::new();
        let (manager, events) = (store.manager(), capture_events());
        let body = || -> Body<'_> {
            Box::pin(async {
                store.restart();
                end.outcome()
            })
        };
        let outcome = fixed_cancel(&manager, body()).await;
        assert!(is_lost(&outcome, LostReason::Taken), "{outcome:?}");
        let outcome = fixed_error(&manager, body()).await;
        assert!(is_lost(&outcome, LostReason::Taken), "{outcome:?}");
        assert!(reported_once_each(&events, 2), "{:?}", events.all());
        let outcome = fixed_ignore(&manager, body()).await;
        assert!(end.is(&outcome), "{outcome:?}");
        assert!(reported_once_each(&events, 3), "{:?}", events.all());
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ends_within_its_lease_succeeds_whatever_on_lost_says() {
    for end in End::BOTH {
        let (manager, events) = (manager(), capture_events());
        let body = || -> Body<'_> {
            Box::pin(async move {
                sleep(SECOND / 2).await;
                end.outcome()
            })
        };
        let outcomes = [
            fixed_cancel(&manager, body()).await,
            fixed_error(&manager, body()).await,
            fixed_ignore(&manager, body()).await,
        ];
        // The loss would have come long ago, and no event reports it.
        sleep(5 * SECOND).await;
        assert!(outcomes.iter().all(|outcome| end.is(outcome)), "{outcomes:?}");
        assert!(events.is_empty(), "{:?}", events.all());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_body_is_dropped_and_its_key_is_free_for_others() {
    struct Dropped<'a>(&'a Cell<bool>);
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    let manager = manager();
    let dropped = Cell::new(false);
    let body = async |_: &Lease| {
        let _dropped = Dropped(&dropped);
        sleep(60 * SECOND).await;
    };
    let started = Instant::now();
    let options = LockOptions::new().ttl(SECOND).renew(false);
    let error = manager.with_lock("job", options, body).await.unwrap_err();
    assert!(matches!(error, Error::Lost { reason: LostReason::Expired, .. }));
    assert!(dropped.get() && started.elapsed() < SECOND);
    assert_eq!(manager.holder("job").await.unwrap(), None);
}
