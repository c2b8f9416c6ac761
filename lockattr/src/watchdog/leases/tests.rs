//! When each lease is renewed, and together with which others: with made-up instants, without a
//! store.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Lease, Leases, MIN_RETRY_PAUSE};
use crate::FencingToken;
use crate::lease::{GrantedLease, LeaseState};
use crate::store::{Claim, LockKey};

const SECOND: Duration = Duration::from_secs(1);
/// Renewed after ten seconds, and up to one second too early.
const TTL: Duration = Duration::from_secs(30);
const INSTANT: Duration = Duration::from_nanos(1);

/// Watches a hold requested at `requested_at`. Returns its id, which is one more than the last.
fn watch(leases: &mut Leases, requested_at: Instant, ttl: Duration, renew: bool) -> u64 {
    let id = leases.all().len() as u64 + 1;
    watch_as(leases, id, requested_at, ttl, renew);
    id
}

fn watch_as(leases: &mut Leases, id: u64, requested_at: Instant, ttl: Duration, renew: bool) {
    let claim = Arc::new(Claim::new(LockKey::new("lock:", "a").unwrap(), ""));
    let fencing = FencingToken::from_counter(7);
    let granted = GrantedLease {
        claim,
        fencing,
        requested_at,
        ttl,
        renew,
        max_hold: None,
        progress_within: None,
    };
    let hold = Arc::new(LeaseState::new(granted));
    let renew_at = hold.renew_at(requested_at, ttl);
    leases.watch(Lease { id, hold, renew_at });
}

/// The ids of the leases to renew, and how many have ended.
fn due(leases: &mut Leases, now: Instant) -> (Vec<u64>, usize) {
    let (due, expired) = leases.due(now);
    (due.into_iter().map(|(id, _)| id).collect(), expired.len())
}

/// Red without: any of the searches by id or by token.
#[test]
fn each_lease_is_found_by_its_number_and_by_its_token_until_it_is_forgotten() {
    let (mut leases, now) = (Leases::default(), Instant::now());
    assert!(leases.is_empty() && leases.next().is_none());
    let first = watch(&mut leases, now, TTL, true);
    let second = watch(&mut leases, now, TTL, true);
    let third = watch(&mut leases, now, TTL, true);
    assert!(!leases.is_empty());
    assert_eq!(leases.next(), Some(now + TTL / 3));
    let holds = [first, second, third].map(|id| leases.hold(id).unwrap());
    for (hold, listed) in holds.iter().zip(leases.all()) {
        assert!(Arc::ptr_eq(hold, &listed), "in their order");
        let is_of_token = leases.holds_of(hold.claim().token());
        assert!(matches!(&is_of_token[..], [one] if Arc::ptr_eq(one, hold)));
    }
    assert_eq!(leases.all().len(), 3);
    leases.forget(second);
    assert!(leases.hold(second).is_none());
    let forgotten = holds[1].claim().token();
    assert!(leases.holds_of(forgotten).is_empty() && leases.tokens.len() == 2);
    assert_eq!(due(&mut leases, now + TTL / 3), (vec![first, third], 0));
    assert_eq!(leases.abandon().len(), 2);
    assert!(leases.is_empty() && leases.all().is_empty() && leases.next().is_none());
    assert!(leases.tokens.is_empty());
}

/// A connection with 10,000 leases ends: each search reads one lease, and not all of them.
///
/// Red without: the search by token in `ids_of`.
#[test]
fn losing_all_leases_reads_each_of_them_once() {
    let (mut leases, now) = (Leases::default(), Instant::now());
    for id in 1..=10_000 {
        watch_as(&mut leases, id, now, TTL, true);
    }
    let tokens: Vec<_> = leases.all().iter().map(|hold| hold.claim().token()).collect();
    let reads: usize = tokens.iter().map(|token| leases.ids_of(*token).count()).sum();
    assert_eq!(reads, 10_000);
    let lost: usize = tokens.iter().map(|token| leases.lose_all_of(*token).len()).sum();
    assert_eq!(lost, 10_000);
    assert!((1..=10_000).all(|id| leases.is_lost(id)));
}

/// The token of a lease that is handed off is that of the next claim.
///
/// Red without: either change of `tokens` in `hand_off`.
#[test]
fn a_lease_that_is_handed_off_is_found_by_the_token_of_its_new_holder() {
    let (mut leases, now) = (Leases::default(), Instant::now());
    let (first, other) = (watch(&mut leases, now, TTL, true), watch(&mut leases, now, TTL, true));
    let [old, new] = [first, other].map(|id| leases.hold(id).unwrap());
    leases.forget(other);
    leases.hand_off(first, &new, now);
    assert!(leases.holds_of(old.claim().token()).is_empty());
    assert_eq!(leases.holds_of(new.claim().token()).len(), 1);
}

/// Red without: the comparison in `due` of the timer with the clock.
#[test]
fn nothing_is_renewed_alone_before_its_time() {
    let (mut leases, now) = (Leases::default(), Instant::now());
    let id = watch(&mut leases, now, TTL, true);
    assert_eq!(due(&mut leases, now + TTL / 3 - INSTANT), (vec![], 0));
    assert_eq!(due(&mut leases, now + TTL / 3), (vec![id], 0));
    assert_eq!(due(&mut leases, now + TTL / 3), (vec![], 0), "it is under way");
}

/// Red without: `early` on either side of `due`.
#[test]
fn a_renewal_comes_along_if_it_is_due_within_a_tenth_of_its_time() {
    let (mut leases, now) = (Leases::default(), Instant::now());
    let due_at = now + TTL / 3;
    let first = watch(&mut leases, now, TTL, true);
    let near = watch(&mut leases, now + SECOND, TTL, true);
    watch(&mut leases, now + SECOND + INSTANT, TTL, true);
    // A renewal of the short lease may be early by a tenth of a second: `short` is not, and
    // `short_near` is.
    let short = watch(&mut leases, due_at - SECOND * 4 / 5, SECOND * 3, true);
    let short_near = watch(&mut leases, due_at - SECOND * 9 / 10, SECOND * 3, true);
    assert_eq!(due(&mut leases, due_at), (vec![first, short_near, near], 0));
    assert_eq!(leases.next(), Some(due_at + SECOND / 5), "the short lease's own time");
    assert_eq!(due(&mut leases, due_at + SECOND / 5), (vec![short], 0), "and no other lease");
}

/// Red without: the parts of `retry_at`, or what `renewed` and `renew_again` set.
#[test]
fn a_renewal_is_tried_again_by_a_part_of_the_time_that_is_left() {
    let (mut leases, now) = (Leases::default(), Instant::now());
    let id = watch(&mut leases, now, TTL, true);
    let deadline = leases.hold(id).unwrap().valid_until();
    let sent = now + TTL / 3;
    assert_eq!(due(&mut leases, sent), (vec![id], 0));
    assert_eq!(
        leases.next(),
        Some(sent + (deadline - sent) / 3),
        "a retry in case the renewal hangs"
    );
    leases.renew_again(id, sent + SECOND);
    let again = sent + SECOND + (deadline - sent - SECOND) / 10;
    assert_eq!(leases.next(), Some(again), "a renewal that failed is retried earlier");
    leases.renew_again(id, deadline - SECOND / 10);
    assert_eq!(leases.next(), Some(deadline - SECOND / 10 + MIN_RETRY_PAUSE));
    leases.renew_again(id, deadline - INSTANT);
    assert_eq!(leases.next(), Some(deadline), "no try is later than the end");
    leases.renewed(id, sent, TTL);
    assert_eq!(leases.next(), Some(sent + TTL / 3));
    assert_eq!(due(&mut leases, sent + TTL / 3), (vec![id], 0));
}

/// Red without: the check of `is_live` in `due`.
#[test]
fn a_lease_whose_deadline_has_passed_is_over_and_asked_for_no_more() {
    let (mut leases, now) = (Leases::default(), Instant::now());
    let renewed = watch(&mut leases, now, TTL, true);
    let fixed = watch(&mut leases, now, TTL, false);
    let deadline = leases.hold(fixed).unwrap().valid_until();
    assert_eq!(due(&mut leases, now + TTL / 3), (vec![renewed], 0));
    leases.renewed(renewed, now + TTL, TTL);
    assert_eq!(leases.next(), Some(deadline), "a lease that is not renewed ends");
    assert_eq!(due(&mut leases, deadline), (vec![], 2));
    assert_eq!(leases.next(), None);
    assert!(!leases.is_empty(), "its guard has not let go");
}

/// Red without: the check in `hand_off` of the last hold's renewal, or the time that it sets.
#[test]
fn a_lease_that_was_not_renewed_is_so_at_once_when_it_is_handed_off() {
    let (mut leases, now) = (Leases::default(), Instant::now());
    let renewed = watch(&mut leases, now, TTL, true);
    let fixed = watch(&mut leases, now, TTL, false);
    for (id, at_once) in [(renewed, false), (fixed, true)] {
        let hold = leases.hold(id).unwrap();
        let next = Arc::new(hold.handed_off(hold.fencing(), TTL, None, now + SECOND));
        assert_eq!(leases.hand_off(id, &next, now + SECOND), at_once);
        assert!(Arc::ptr_eq(&leases.hold(id).unwrap(), &next));
    }
    assert_eq!(due(&mut leases, now + SECOND), (vec![fixed], 0));
    let hold = leases.hold(fixed).unwrap();
    assert!(!leases.hand_off(fixed + 1, &hold, now), "no lease has that id");
}

/// Red without: the check of `is_urgent` in `set_renewal`, or its reset in `due`.
#[test]
fn a_renewal_that_is_due_now_does_not_wait_because_an_earlier_one_was_answered() {
    let (mut leases, now) = (Leases::default(), Instant::now());
    let id = watch(&mut leases, now, TTL, true);
    assert_eq!(due(&mut leases, now + TTL / 3), (vec![id], 0));
    leases.renew_now(id, now + TTL / 3);
    leases.renewed(id, now + TTL / 3, TTL);
    assert_eq!(due(&mut leases, now + TTL / 3), (vec![id], 0));
    leases.renewed(id, now + TTL / 3, TTL);
    assert_eq!(leases.next(), Some(now + 2 * (TTL / 3)));
}
