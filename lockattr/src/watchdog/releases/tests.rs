//! Which releases are due when, and how many are pending: with made-up instants, without a store.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{self, Builder, Handle};
use tokio::time::Instant;

use super::{MAX_RETRY_PAUSE, MIN_RETRY_PAUSE, PendingRelease, Releases};
use crate::FencingToken;
use crate::lease::{GrantedLease, LeaseState};
use crate::store::{Claim, LockKey, ReleaseRequest};

const LATER: Duration = Duration::from_secs(10);
const INSTANT: Duration = Duration::from_nanos(1);

fn lock(key: &str) -> ReleaseRequest {
    ReleaseRequest::new(Arc::new(Claim::new(LockKey::new("lock:", key).unwrap(), "")))
}

/// A release that is tried until `until`.
fn release(key: &str, until: Instant) -> PendingRelease {
    PendingRelease::new(lock(key), until, Some(hold(key)), until)
}

fn hold(key: &str) -> Arc<LeaseState> {
    Arc::new(LeaseState::new(GrantedLease {
        claim: lock(key).claim,
        fencing: FencingToken::from_counter(1),
        requested_at: Instant::now(),
        ttl: LATER,
        renew: true,
        max_hold: None,
        progress_within: None,
    }))
}

fn keys(due: &[PendingRelease]) -> Vec<&str> {
    due.iter().map(|release| release.lock.claim.key().as_str()).collect()
}

fn some_runtime() -> runtime::Id {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { Handle::current().id() })
}

/// Red without: the counting in `add` and `settled`, or the id that distinguishes two releases of
/// one instant.
#[test]
fn each_lock_is_sent_once_and_owed_until_it_is_settled() {
    let (mut releases, now) = (Releases::default(), Instant::now());
    assert!(releases.all_settled() && releases.next().is_none());
    releases.add(release("a", now + LATER), now);
    releases.add(release("b", now + LATER), now);
    assert_eq!(releases.next(), Some(now));
    assert!(releases.due(now - INSTANT).is_empty(), "not before its time");
    let due = releases.due(now);
    assert_eq!(keys(&due), ["a", "b"]);
    assert!(due.iter().all(|release| release.held.is_some()));
    assert!(releases.due(now).is_empty() && releases.next().is_none());
    assert!(!releases.all_settled(), "they are on their way");
    releases.settled();
    assert!(!releases.all_settled());
    releases.settled();
    assert!(releases.all_settled());
}

/// Red without: the counting in `sent_by_caller`, or the comparison in `adopted_on`.
#[test]
fn what_a_caller_left_behind_is_adopted_where_it_was_sent() {
    let (here, there) = (some_runtime(), some_runtime());
    let mut releases = Releases::default();
    releases.sent_by_caller();
    releases.sent_by_caller();
    releases.adopt(there, Box::pin(async {}));
    assert!(releases.adopted_on(here).is_empty());
    assert_eq!(releases.adopted_on(there).len(), 1);
    assert!(releases.adopted_on(there).is_empty(), "it has been taken");
    releases.settled();
    assert!(!releases.all_settled());
    releases.settled();
    assert!(releases.all_settled());
}

/// If the lock is gone the next time, the first attempt may have released it.
///
/// Red without: `held = None` or `insert` in `put_back`.
#[test]
fn what_is_put_back_is_still_owed_and_no_news_any_more() {
    let (mut releases, now) = (Releases::default(), Instant::now());
    releases.add(release("a", now + LATER), now);
    let sent = releases.due(now).pop().unwrap();
    releases.put_back(sent, now + LATER);
    assert!(releases.due(now + LATER - INSTANT).is_empty());
    let due = releases.due(now + LATER);
    assert_eq!(keys(&due), ["a"]);
    assert!(due[0].held.is_none());
    releases.settled();
    assert!(releases.all_settled());
}

/// Red without: `/ 20`, or either end of the clamp, in `retry`.
#[test]
fn a_release_without_an_answer_is_tried_again_after_a_part_of_the_time_that_is_left() {
    let now = Instant::now();
    let pauses = [
        (Duration::from_secs(10), Duration::from_millis(500)),
        (Duration::from_secs(60), MAX_RETRY_PAUSE),
        (Duration::from_millis(100), MIN_RETRY_PAUSE),
        (MIN_RETRY_PAUSE + INSTANT, MIN_RETRY_PAUSE),
    ];
    for (remaining, pause) in pauses {
        let mut releases = Releases::default();
        releases.sent_by_caller();
        releases.retry(release("a", now + remaining), now);
        assert_eq!(releases.next(), Some(now + pause), "{remaining:?}");
        assert!(!releases.all_settled());
    }
}

/// Red without: the comparison in `retry` with the end of the lease, or `settled` behind it.
#[test]
fn a_release_is_not_tried_again_when_the_store_has_let_go_by_itself() {
    let now = Instant::now();
    for remaining in [Duration::ZERO, MIN_RETRY_PAUSE] {
        let mut releases = Releases::default();
        releases.sent_by_caller();
        releases.retry(release("a", now + remaining), now);
        assert_eq!(releases.next(), None, "{remaining:?}");
        assert!(releases.all_settled());
    }
}

/// Red without: `retry_now`, or its check whether any release waits.
#[test]
fn a_hurry_makes_all_due_that_wait_and_none_that_come_later() {
    let (mut releases, now) = (Releases::default(), Instant::now());
    releases.retry_now();
    releases.add(release("a", now + LATER), now + LATER);
    assert!(releases.due(now).is_empty(), "it was added after `retry_now`");
    releases.retry_now();
    assert_eq!(keys(&releases.due(now)), ["a"]);
    releases.add(release("b", now + LATER), now + LATER);
    assert!(releases.due(now).is_empty());
}

/// Red without: `held_until`, or the time that `request` subtracts.
#[test]
fn what_stays_taken_does_so_until_the_same_instant_whenever_it_is_sent() {
    let now = Instant::now();
    let release = PendingRelease::new(lock("a").after(LATER), now + LATER, None, now);
    assert_eq!(release.request(now).after, LATER);
    assert_eq!(release.request(now + LATER / 4).after, LATER * 3 / 4);
    assert_eq!(release.request(now + LATER * 2).after, Duration::ZERO);
    assert_eq!(PendingRelease::new(lock("b"), now, None, now).request(now).after, Duration::ZERO);
}
