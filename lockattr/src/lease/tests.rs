//! The state of a hold just before and after each change: no store, no timer, no waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::runtime::Builder;
use tokio::time::{Instant, advance};

use super::{GrantedLease, LeaseState, validity};
use crate::store::{Claim, LockKey};
use crate::{Error, FencingToken, LostReason};

const TTL: Duration = Duration::from_secs(10);
/// Ten seconds, less 1 % and 2 ms.
const VALID: Duration = Duration::from_millis(9_898);
const INSTANT: Duration = Duration::from_nanos(1);

fn granted() -> GrantedLease {
    let claim = Arc::new(Claim::new(LockKey::new("lock:", "a").unwrap(), ""));
    let fencing = FencingToken::from_counter(7);
    GrantedLease {
        claim,
        fencing,
        requested_at: Instant::now(),
        ttl: TTL,
        renew: true,
        max_hold: None,
        progress_within: None,
    }
}

fn hold() -> (LeaseState, Instant) {
    let granted = granted();
    let requested_at = granted.requested_at;
    (LeaseState::new(granted), requested_at)
}

fn capped_at(max_hold: Duration) -> (LeaseState, Instant) {
    let granted = GrantedLease { max_hold: Some(max_hold), ..granted() };
    let requested_at = granted.requested_at;
    (LeaseState::new(granted), requested_at)
}

/// Red without: the comparison of `check` with the deadline, or what `validity` takes off.
#[test]
fn a_lease_is_ours_until_its_deadline_and_not_at_it() {
    let (hold, requested_at) = hold();
    assert_eq!(validity(TTL), VALID);
    assert_eq!(hold.valid_until(), requested_at + VALID);
    let last = requested_at + VALID - INSTANT;
    assert_eq!(hold.check(last), Ok(()));
    assert!(hold.is_live(last) && hold.ensure_held(last).is_ok());
    assert!(!hold.is_live(requested_at + VALID));
    assert_eq!(hold.check(requested_at + VALID), Err(LostReason::Expired));
    assert_eq!(hold.check(last), Err(LostReason::Expired), "an ended lease stays ended");
    let error = hold.ensure_held(last).unwrap_err();
    assert!(matches!(error, Error::Lost { key, reason: LostReason::Expired } if key == "a"));
}

/// Red without: any arm of the phases in `check`, or the exchange in `lose`.
#[test]
fn a_hold_tells_the_first_reason_of_its_end() {
    let reasons = [
        LostReason::Expired,
        LostReason::Taken,
        LostReason::MaxHold,
        LostReason::ShutDown,
        LostReason::Released,
        LostReason::Forked,
    ];
    for (reason, later) in reasons.into_iter().zip(reasons.into_iter().cycle().skip(1)) {
        let (hold, requested_at) = hold();
        hold.lose(reason);
        hold.lose(later);
        assert_eq!(hold.check(requested_at), Err(reason));
        // After a shutdown, the lease goes on until the holder, which was only signalled, releases
        // it.
        assert_eq!(hold.is_live(requested_at), reason == LostReason::ShutDown);
        assert!(!hold.is_live(requested_at + VALID));
    }
}

/// Red without: the clamp in `at_most`, or what `capped` compares.
#[test]
fn max_hold_caps_each_renewal_and_then_ends_the_hold() {
    let (hold, requested_at) = capped_at(Duration::from_secs(25));
    assert_eq!(hold.renewal_ttl(requested_at + Duration::from_secs(5)), TTL);
    assert_eq!(hold.renewal_ttl(requested_at + Duration::from_secs(20)), Duration::from_secs(5));
    assert_eq!(hold.renewal_ttl(requested_at + Duration::from_secs(26)), Duration::ZERO);
    assert_eq!(hold.at_most(TTL * 9, requested_at), Duration::from_secs(25));
    assert!(hold.renew_at(requested_at, TTL).is_some());
    assert_eq!(
        hold.check(requested_at + VALID),
        Err(LostReason::Expired),
        "it could have lasted longer"
    );

    let (hold, requested_at) = capped_at(TTL);
    assert_eq!(hold.renew_at(requested_at, TTL), None, "it lasts as long as it may");
    assert_eq!(hold.check(requested_at + VALID), Err(LostReason::MaxHold));
}

/// Red without: `/ 3` in `renew_at`, or its check of `renew`.
#[test]
fn a_lease_wants_to_be_renewed_after_a_third_of_it() {
    let (hold, requested_at) = hold();
    let sent = requested_at + Duration::from_secs(1);
    assert_eq!(hold.renew_at(sent, TTL * 3), Some(sent + TTL));
    let fixed = LeaseState::new(GrantedLease { renew: false, ..granted() });
    assert_eq!(fixed.renew_at(sent, TTL), None);
}

/// Red without: `fetch_max` in `renewed`, or the instant from which it counts.
#[tokio::test(start_paused = true)]
async fn a_renewal_counts_from_before_it_was_sent_and_never_shortens() {
    let (hold, requested_at) = hold();
    let sent = requested_at + Duration::from_secs(4);
    hold.renewed(sent, TTL);
    assert_eq!(hold.valid_until(), sent + VALID);
    hold.renewed(sent, TTL / 2);
    assert_eq!(hold.valid_until(), sent + VALID);
    advance(Duration::from_secs(14)).await;
    hold.renewed(Instant::now(), TTL);
    assert_eq!(hold.valid_until(), sent + VALID, "a lease that lapsed stays lost");
}

/// Red without: `fetch_max` in `lengthen`.
#[test]
fn every_later_renewal_is_as_long_as_the_longest_that_was_asked_for() {
    let (hold, requested_at) = hold();
    hold.lengthen(TTL * 2);
    hold.lengthen(TTL);
    assert_eq!((hold.ttl(), hold.renewal_ttl(requested_at)), (TTL * 2, TTL * 2));
}

/// Red without: the TTL that `expires_in_store_at` adds, or what `note_request` records.
#[test]
fn the_store_has_let_go_when_the_longest_lease_it_was_asked_for_is_over() {
    let (hold, requested_at) = hold();
    assert_eq!(hold.expires_in_store_at(), requested_at + TTL + TTL);
    let sent = requested_at + Duration::from_secs(3);
    hold.note_request(sent, TTL * 4);
    assert_eq!(hold.expires_in_store_at(), sent + TTL * 4 + TTL);
    assert_eq!(hold.valid_until(), requested_at + VALID, "no renewal was answered");
}

/// Red without: `saturating_duration_since(now)` in `handed_off`, or its receiver.
#[test]
fn a_process_that_is_handed_a_lease_has_what_is_left_of_it() {
    let (hold, requested_at) = hold();
    hold.note_request(requested_at, TTL * 2);
    let now = requested_at + Duration::from_secs(3);
    let next = hold.handed_off(FencingToken::from_counter(8), TTL, None, now);
    assert_eq!(next.valid_until(), requested_at + VALID);
    assert_eq!(next.expires_in_store_at(), requested_at + TTL * 2 + TTL);
    assert_eq!(next.check(now), Ok(()));
    // Seven seconds are left, and six may be held: a cap that is reached needs no renewal.
    let capped = |max_hold| hold.handed_off(hold.fencing(), TTL, Some(max_hold), now);
    assert_eq!(capped(Duration::from_secs(6)).renew_at(now, TTL), None);
    assert!(capped(Duration::from_secs(8)).renew_at(now, TTL).is_some());
    let lapsed = hold.handed_off(hold.fencing(), TTL, None, requested_at + TTL);
    assert_eq!(lapsed.check(requested_at + TTL), Err(LostReason::Expired));
}

/// A waiter learns of the deadline even if its runtime does not drive its timers, for example
/// because the worker that has them is in a long computation.
///
/// Red without: `signal_end`, or the `notify_waiters` of `lose`.
#[test]
fn a_deadline_is_signalled_to_a_waiter_where_no_timer_fires() {
    struct Woken(AtomicBool);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }
    let undriven = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let _inside = undriven.enter();
    let hold = Arc::new(hold().0);
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Waker::from(woken.clone());
    let mut ended = Box::pin(hold.clone().ended());
    assert!(ended.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    // The first poll advances the clock; no second one is needed.
    assert!(advance(VALID).now_or_never().is_none());
    assert_eq!(Instant::now(), hold.valid_until());
    assert!(!woken.0.load(Ordering::Acquire), "no runtime drives that timer");
    hold.signal_end();
    assert!(woken.0.load(Ordering::Acquire));
    let end = ended.as_mut().poll(&mut Context::from_waker(&waker));
    assert_eq!(end, Poll::Ready(LostReason::Expired));
}
