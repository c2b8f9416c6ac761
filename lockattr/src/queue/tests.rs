//! The order of hand-offs in a wait queue, one step after the other. The models check other orders of these steps.

use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;

use crate::platform::sync::Arc;
use crate::queue::{
    CachedLock, Head, Joined, Limits, Next, PICK_UP_TIMEOUT, Received, SelectedWaiter, Unclaimed,
    WaitQueues, Waiter,
};

type WaitQueue = Arc<WaitQueues<u32, &'static str>>;

const SECOND: Duration = Duration::from_secs(1);
const INSTANT: Duration = Duration::from_nanos(1);

/// Queues in which a lock is handed off twice, within ten seconds, while another process waits.
fn queues() -> (WaitQueue, Instant) {
    (WaitQueues::new(Limits { count: 2, time: SECOND * 10 }), Instant::now())
}

/// The head of a queue without a cached lock.
fn head_of(queues: &WaitQueue, name: &str) -> Head<u32, &'static str> {
    match queues.join(name, 0, None) {
        Joined::Head(head, None) => head,
        other => panic!("{other:?}"),
    }
}

fn join_behind<const N: usize>(
    queues: &WaitQueue,
    wants: [u32; N],
) -> [Waiter<u32, &'static str>; N] {
    wants.map(|wants| match queues.join("a", wants, None) {
        Joined::Waiting(waiter) => waiter,
        Joined::Head(..) => panic!("there is a head"),
    })
}

fn new_head(waiter: &mut Waiter<u32, &'static str>) -> Option<Head<u32, &'static str>> {
    match waiter.received().now_or_never()? {
        Received::Head(head) => Some(head),
        Received::Lock(lock) => panic!("{lock} must not be handed off"),
        Received::Probe(id, _) => panic!("{id} must not send a probe"),
    }
}

/// What the next holder wants, or whether another process waits.
fn next_waiter(head: &Head<u32, &'static str>, now: Instant) -> Result<u32, bool> {
    match head.next(now, |_| true) {
        Next::Waiter(waiter) => Ok(*waiter.wants()),
        Next::Store { contended } => Err(contended),
    }
}

/// Red without: `leave`, the `Drop` that calls it, or the id of each waiter.
#[test]
fn the_place_in_front_goes_on_to_those_who_are_left_in_their_order() {
    let (queues, _) = queues();
    let first = head_of(&queues, "a");
    assert!(queues.try_join("a").is_none(), "there is a head");
    let [mut second, third, mut fourth, fifth] = join_behind(&queues, [2, 3, 4, 5]);
    drop(third);
    assert!(new_head(&mut second).is_none());
    drop(first);
    let head = new_head(&mut second).expect("it is the next head");
    assert!(new_head(&mut fourth).is_none());
    drop(head);
    drop(new_head(&mut fourth).expect("it is the next head"));
    // Notified already, and dropped before it was polled.
    drop(fifth);
    let (head, cached) = queues.try_join("a").expect("the queue is empty");
    assert!(cached.is_none());
    assert!(format!("{head:?}").starts_with(r#"Head { name: "a""#));
}

/// Red without: the `Drop` of a waiter that was notified.
#[test]
fn a_turn_that_no_process_takes_goes_to_the_next() {
    let (queues, now) = queues();
    let first = head_of(&queues, "a");
    let [second, mut third] = join_behind(&queues, [2, 3]);
    assert!(format!("{second:?}").starts_with(r#"Waiter { name: "a""#));
    drop(first);
    drop(second);
    let head = new_head(&mut third).expect("it is the next head");
    let [fourth] = join_behind(&queues, [4]);
    let Next::Waiter(waiter) = head.next(now, |_| true) else { panic!("a caller waits") };
    drop(fourth);
    assert_eq!(waiter.hand_off("lock"), Err("lock"), "the waiter or queue is gone");
}

/// The outcome of a check, in a word. A hand-off that was taken back is passed on.
fn check(queues: &WaitQueue, at: Instant) -> &'static str {
    match queues.check_unclaimed("a", at) {
        Unclaimed::Nothing => "nothing",
        Unclaimed::ForNow => "for now",
        Unclaimed::TooLong(received) => {
            drop(received);
            "too long"
        }
    }
}

#[test]
fn a_turn_that_is_not_picked_up_goes_on_to_the_next() {
    let (queues, now) = queues();
    let first = head_of(&queues, "a");
    let [mut second, mut third, mut fourth] = join_behind(&queues, [2, 3, 4]);
    assert_eq!(check(&queues, now), "nothing");
    drop(first);
    assert_eq!(check(&queues, now), "for now");
    assert_eq!(check(&queues, now + PICK_UP_TIMEOUT - INSTANT), "for now");
    assert!(third.received().now_or_never().is_none());
    assert_eq!(check(&queues, now + PICK_UP_TIMEOUT), "too long");
    let head = new_head(&mut third).expect("it is the next head");
    // The next poll puts it at the front of the queue.
    assert!(new_head(&mut second).is_none());
    assert_eq!(check(&queues, now + PICK_UP_TIMEOUT), "nothing");
    drop(head);
    assert!(new_head(&mut fourth).is_none());
    let head = new_head(&mut second).expect("it is the next head again");
    drop(head);
    drop(new_head(&mut fourth).expect("it is the next head"));
    assert!(queues.try_join("a").is_some(), "the queue is empty");
}

/// Red without: what `reclaim_all` searches for, or the new queue in `pick_up`.
#[test]
fn a_lock_that_no_process_picks_up_is_taken_back_without_another_waiter() {
    let (queues, now) = queues();
    let first = head_of(&queues, "a");
    let [mut second] = join_behind(&queues, [2]);
    let Next::Waiter(waiter) = first.next(now, |_| true) else { panic!("a caller waits") };
    assert_eq!(waiter.hand_off("lock"), Ok(()));
    assert!(queues.reclaim_all(now).is_empty());
    let mut reclaimed = queues.reclaim_all(now + PICK_UP_TIMEOUT);
    assert!(matches!(reclaimed.pop(), Some(Received::Lock("lock"))) && reclaimed.is_empty());
    assert!(queues.reclaim_all(now + SECOND).is_empty());
    drop(first);
    let (again, _) = queues.try_join("a").expect("the queue is empty");
    drop(again);
    let head = new_head(&mut second).expect("the queue is empty");
    assert!(queues.try_join("a").is_none(), "there is a head");
    drop(head);
}

/// Red without: the call of `fits` in `next`, or what `hand_off` sends.
#[test]
fn a_lock_is_handed_to_the_first_in_the_queue_if_it_fits_and_to_no_other() {
    let (queues, now) = queues();
    let first = head_of(&queues, "a");
    assert_eq!(next_waiter(&first, now), Err(false), "no caller waits");
    let [mut second, mut third] = join_behind(&queues, [2, 3]);
    assert!(matches!(first.next(now, |wants| *wants == 3), Next::Store { contended: false }));
    let Next::Waiter(waiter) = first.next(now, |wants| *wants == 2) else { panic!("it fits") };
    assert_eq!(waiter.hand_off("lock"), Ok(()));
    assert!(matches!(second.received().now_or_never(), Some(Received::Lock("lock"))));
    assert!(new_head(&mut third).is_none());
}

/// Red without: either limit in `next`, or the count.
#[test]
fn while_another_process_waits_a_lock_is_handed_off_so_often_and_so_long() {
    let (queues, now) = queues();
    let first = head_of(&queues, "a");
    let _waiters = join_behind(&queues, [2, 3, 4, 5, 6, 7, 8, 9]);
    first.granted(false, (), now);
    assert_eq!(
        [(); 3].map(|()| next_waiter(&first, now)),
        [Ok(2), Ok(3), Ok(4)],
        "no other process waits"
    );
    assert!(
        queues.contended(Some("b"), now).is_empty() && queues.contended(Some("a"), now).is_empty()
    );
    // A second notification changes nothing.
    assert!(queues.contended(None, now + SECOND * 9).is_empty());
    assert_eq!(next_waiter(&first, now + SECOND * 10 - INSTANT), Ok(5));
    assert_eq!(next_waiter(&first, now + SECOND * 10), Err(true), "the time limit is reached");
    assert_eq!(next_waiter(&first, now), Ok(6));
    assert_eq!(next_waiter(&first, now), Err(true), "the count limit is reached");
    // Before the second grant, the store served other processes, some of which still wait.
    first.granted(false, (), now + SECOND * 10);
    assert_eq!(next_waiter(&first, now + SECOND * 19), Ok(7));
    assert_eq!(next_waiter(&first, now + SECOND * 20), Err(true));
}

/// Red without: `contended` recorded in `granted`, or reset in `leave`.
#[test]
fn a_grant_that_says_that_others_wait_begins_to_count() {
    let (queues, now) = queues();
    let first = head_of(&queues, "a");
    let [mut second, _third] = join_behind(&queues, [2, 3]);
    first.granted(true, (), now);
    assert_eq!(next_waiter(&first, now + SECOND * 10), Err(true));
    drop(first);
    let head = new_head(&mut second).expect("it is the next head");
    assert_eq!(next_waiter(&head, now + SECOND * 10), Ok(3), "the store reports it again");
}

/// Red without: the cached lock in `cache`, or its removal in `join` and `try_join`.
#[test]
fn a_kept_lock_goes_to_the_next_call() {
    let (queues, now) = queues();
    assert_eq!(head_of(&queues, "a").cache("lock", now + SECOND), Ok(()));
    let Joined::Head(again, Some("lock")) = queues.join("a", 0, None) else {
        panic!("the lock was cached")
    };
    assert_eq!(again.cache("lock", now + SECOND), Ok(()));
    let (again, cached) = queues.try_join("a").expect("there is no head");
    assert_eq!(cached, Some("lock"));
    assert!(
        matches!(queues.check_cached("a", now), CachedLock::Gone),
        "the lock is no longer cached"
    );
    let _waiter = join_behind(&queues, [2]);
    drop(again);
}

/// Red without: either condition in `cache`.
#[test]
fn no_lock_is_kept_from_one_a_waiter_here_or_elsewhere() {
    let (queues, now) = queues();
    let first = head_of(&queues, "a");
    let [mut second] = join_behind(&queues, [2]);
    assert_eq!(first.cache("lock", now + SECOND), Err("lock"));
    let head = new_head(&mut second).expect("it is the next head");
    head.granted(true, (), now);
    assert_eq!(head.cache("lock", now + SECOND), Err("lock"));
    assert!(matches!(queues.check_cached("a", now), CachedLock::Gone));
}

/// Red without: the comparison in `check_cached`, or the removal of the queue after it.
#[test]
fn a_lock_is_kept_until_its_time_and_not_at_it() {
    let (queues, now) = queues();
    assert!(matches!(queues.check_cached("a", now), CachedLock::Gone));
    assert_eq!(head_of(&queues, "a").cache("lock", now + SECOND), Ok(()));
    let CachedLock::Until(until) = queues.check_cached("a", now + SECOND - INSTANT) else {
        panic!("too early")
    };
    assert_eq!(until, now + SECOND);
    assert!(matches!(queues.check_cached("a", now + SECOND), CachedLock::Expired("lock")));
    assert!(matches!(queues.check_cached("a", now + SECOND), CachedLock::Gone));
    drop(head_of(&queues, "a"));
}

/// Red without: the checks in `take_cached` of the name and of the cached lock.
#[test]
fn a_lock_that_is_wanted_elsewhere_is_given_up_where_it_is_only_kept() {
    let (queues, now) = queues();
    let cache = |name, lock| assert_eq!(head_of(&queues, name).cache(lock, now + SECOND), Ok(()));
    let busy = head_of(&queues, "busy");
    cache("b", "lock of b");
    cache("a", "lock of a");
    assert_eq!(queues.contended(Some("a"), now), ["lock of a"]);
    assert!(
        queues.contended(Some("a"), now).is_empty()
            && queues.contended(Some("busy"), now).is_empty()
    );
    cache("a", "lock of a");
    assert_eq!(queues.contended(None, now), ["lock of a", "lock of b"]);
    cache("a", "lock of a");
    cache("b", "lock of b");
    assert_eq!(queues.take_cached(Some("b")), ["lock of b"]);
    assert!(
        queues.take_cached(Some("busy")).is_empty() && queues.take_cached(Some("b")).is_empty()
    );
    assert_eq!(queues.take_cached(None), ["lock of a"]);
    assert!(matches!(queues.join("busy", 0, None), Joined::Waiting(_)), "there is a head");
    assert_eq!(busy.cache("lock", now + SECOND), Err("lock"), "another process waits");
}

/// The waiter that is to get a lease past the head.
fn bypass(queues: &WaitQueue, now: Instant) -> Option<SelectedWaiter<u32, &'static str>> {
    let before = queues.may_bypass_head("a", now, |_| true)?;
    queues.bypass_head("a", before, now, |_| true)
}

/// Red without: the check of `selected` in `leave`; `remove_head` in `promote_next`; the check of
/// pending hand-offs in `remove_if_empty`, or the new head in `join`, in `try_join` and in
/// `pick_up`.
#[test]
fn a_lease_on_its_way_past_the_head_finds_its_waiter_also_when_the_head_has_gone() {
    let (queues, now) = queues();
    let head = head_of(&queues, "a");
    let [mut selected_waiter] = join_behind(&queues, [2]);
    let selected = bypass(&queues, now).unwrap();
    assert_eq!(*selected.wants(), 2);
    drop(head);
    selected.hand_off("a lease").unwrap();
    // No caller is ahead of those that join now.
    let head = head_of(&queues, "a");
    drop(head);
    let (head, _) = queues.try_join("a").expect("there is no head");
    let [waiting] = join_behind(&queues, [3]);
    drop((waiting, head));
    assert!(matches!(selected_waiter.received().now_or_never(), Some(Received::Lock("a lease"))));
    assert_eq!(queues.signs("a"), None, "the waiter or queue is gone");

    let head = head_of(&queues, "a");
    let [mut overdue] = join_behind(&queues, [2]);
    bypass(&queues, now).unwrap().hand_off("a lease").unwrap();
    drop(head);
    assert!(matches!(queues.check_unclaimed("a", now), Unclaimed::ForNow));
    let later = now + PICK_UP_TIMEOUT;
    assert!(matches!(
        queues.check_unclaimed("a", later),
        Unclaimed::TooLong(Received::Lock("a lease"))
    ));
    drop(new_head(&mut overdue).expect("there is no other head"));
    assert_eq!(queues.signs("a"), None, "the waiter or queue is gone");
}

/// Red without: `remove_if_empty` in the drop of a waiter.
#[test]
fn a_waiter_that_is_gone_when_the_lease_comes_leaves_no_line() {
    let (queues, now) = queues();
    let head = head_of(&queues, "a");
    let [gone] = join_behind(&queues, [2]);
    let selected = bypass(&queues, now).unwrap();
    drop((head, gone));
    assert_eq!(selected.hand_off("a lease"), Err("a lease"));
    assert_eq!(queues.signs("a"), None, "the waiter or queue is gone");
}

/// Red without: either limit in `admits_bypass`, the count in `bypass_head`, or its reset in
/// `was_granted` and nowhere else; the check of the head's answer; the grace period.
#[test]
fn so_many_get_in_past_a_head_before_a_lease_goes_to_the_store() {
    let (queues, now) = queues();
    let head = head_of(&queues, "a");
    head.learned(());
    let mut waiting = join_behind(&queues, [1, 2, 3, 4, 5, 6, 7, 8]);
    let bypassed = |now| bypass(&queues, now).map(|selected| *selected.wants());
    assert_eq!([bypassed(now), bypassed(now), bypassed(now)], [Some(1), Some(2), None]);
    // During the grace period, until the store has granted that lease.
    let later = now + SECOND;
    assert_eq!([bypassed(now), bypassed(later)], [Some(3), None]);
    drop(head);
    let head = new_head(&mut waiting[3]).expect("it is the next head");
    assert_eq!(bypassed(later), None, "a head that gives up changes nothing");
    queues.was_granted("a");
    assert_eq!([bypassed(later), bypassed(later + SECOND * 10)], [Some(5), None]);
    queues.was_granted("a");
    assert_eq!(
        [bypassed(later), bypassed(later), bypassed(later)],
        [Some(6), Some(7), Some(8)],
        "no answer yet"
    );
    drop(head);
}

/// Red without: the comparison with `before`.
#[test]
fn a_lease_goes_to_no_process_that_came_too_late_for_its_number() {
    let (queues, now) = queues();
    let _head = head_of(&queues, "a");
    let [early] = join_behind(&queues, [1]);
    let before = queues.may_bypass_head("a", now, |_| true).unwrap();
    drop(early);
    let _late = join_behind(&queues, [2]);
    assert!(queues.bypass_head("a", before, now, |_| true).is_none());
}
