//! What wakes which task, and when a task may end: with made-up instants, without a store.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::runtime::{self, Builder, Handle};
use tokio::time::Instant;

use super::{LastResort, PendingRelease, Queue};
use crate::FencingToken;
use crate::lease::{GrantedLease, LeaseState};
use crate::store::{Claim, LockKey, ReleaseRequest};
use crate::watchdog::new_leases::Lease;
use crate::watchdog::wake::Wake;

const SECOND: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_secs(30);

fn some_runtime() -> runtime::Id {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { Handle::current().id() })
}

fn claim() -> Arc<Claim> {
    Arc::new(Claim::new(LockKey::new("lock:", "a").unwrap(), ""))
}

fn hold(requested_at: Instant) -> Arc<LeaseState> {
    let (claim, fencing) = (claim(), FencingToken::from_counter(7));
    Arc::new(LeaseState::new(GrantedLease {
        claim,
        fencing,
        requested_at,
        ttl: TTL,
        renew: true,
        max_hold: None,
        progress_within: None,
    }))
}

/// Watches a hold. Returns the lease's id.
fn watch(queue: &mut Queue, hold: Arc<LeaseState>, requested_at: Instant) -> u64 {
    let (id, renew_at) = (7, hold.renew_at(requested_at, TTL));
    queue.leases.watch(Lease { id, hold, renew_at });
    id
}

fn release(until: Instant) -> PendingRelease {
    PendingRelease::new(ReleaseRequest::new(claim()), until, None, until)
}

/// Registers a task on `runtime`; `None` if there is one.
fn enter(queue: &mut Queue, runtime: runtime::Id) -> Option<Arc<Wake>> {
    let wake = Wake::unwatched();
    queue.enter(runtime, &wake).then_some(wake)
}

fn was_woken(wake: &Wake) -> bool {
    wake.woken().now_or_never().is_some()
}

/// Work added between a task's last check and its end would otherwise find the task still
/// registered.
#[test]
fn a_task_that_may_leave_is_gone_at_once() {
    let (mut queue, runtime) = (Queue::default(), some_runtime());
    assert!(queue.is_driven_by_none());
    assert!(enter(&mut queue, runtime).is_some());
    assert!(enter(&mut queue, runtime).is_none(), "a second task is refused");
    assert!(queue.is_driven_by(runtime) && !queue.is_driven_by_none());
    assert!(!queue.leave_if_done(runtime), "the manager is not closing");
    queue.closing = true;
    assert!(queue.leave_if_done(runtime));
    assert!(queue.is_driven_by_none());
    assert!(enter(&mut queue, runtime).is_some(), "the next task starts");
}

/// Red without: any of the three conditions in `leave_if_done`.
#[test]
fn a_task_stays_while_a_lease_is_held_or_a_lock_is_owed() {
    let (mut queue, runtime, now) = (Queue::default(), some_runtime(), Instant::now());
    let _wake = enter(&mut queue, runtime);
    queue.closing = true;
    let id = watch(&mut queue, hold(now), now);
    assert!(!queue.leave_if_done(runtime));
    queue.leases.forget(id);
    queue.release(release(now + TTL), now);
    assert!(!queue.leave_if_done(runtime));
    assert_eq!(queue.due(runtime, now, None).releases.len(), 1);
    assert!(!queue.leave_if_done(runtime), "it is on its way");
    queue.releases.settled();
    assert!(queue.leave_if_done(runtime));
}

#[test]
fn a_task_that_has_left_takes_no_successor_along() {
    let runtime = some_runtime();
    let mut queue = Queue { closing: true, ..Queue::default() };
    let first = enter(&mut queue, runtime).unwrap();
    assert!(queue.leave_if_done(runtime));
    let second = enter(&mut queue, runtime).unwrap();
    drop(queue.leave(runtime, &first));
    assert!(queue.is_driven_by(runtime));
    drop(queue.leave(runtime, &second));
    assert!(!queue.is_driven_by(runtime));
}

/// Red without: `adopted_on` or `wake` in `leave`.
#[test]
fn a_task_that_leaves_gives_up_what_it_had_and_wakes_the_others() {
    let (mut queue, here, there) = (Queue::default(), some_runtime(), some_runtime());
    let mine = enter(&mut queue, here).unwrap();
    let other = enter(&mut queue, there).unwrap();
    assert!(queue.adopt(here, Box::pin(async {})).is_none());
    assert_eq!(queue.leave(here, &mine).len(), 1);
    assert!(was_woken(&other));
    assert!(queue.adopt(here, Box::pin(async {})).is_some(), "the task has ended");
}

/// Red without: `adopt` or `notify_one` in `Queue::adopt`.
#[test]
fn what_a_caller_left_behind_goes_to_the_task_of_its_runtime() {
    let (mut queue, here, there) = (Queue::default(), some_runtime(), some_runtime());
    let (mine, other) = (enter(&mut queue, here).unwrap(), enter(&mut queue, there).unwrap());
    assert!(queue.adopt(here, Box::pin(async {})).is_none());
    assert!(was_woken(&mine) && !was_woken(&other));
    assert!(queue.due(there, Instant::now(), None).adopted.is_empty());
    assert_eq!(queue.due(here, Instant::now(), None).adopted.len(), 1);
}

/// Red without: the `rest`, or the timers before it.
#[test]
fn with_nothing_due_a_task_rests_before_it_sleeps_for_good() {
    let (mut queue, runtime, now) = (Queue::default(), some_runtime(), Instant::now());
    assert_eq!(queue.due(runtime, now, Some(SECOND)).next, Some(now + SECOND));
    assert_eq!(queue.due(runtime, now, None).next, None);
    assert!(queue.recheck_at("a", now + SECOND * 2));
    assert_eq!(queue.due(runtime, now, Some(SECOND)).next, Some(now + SECOND * 2));
}

/// Red without: `recheck_timers`, `closing`, or the comparison, in `recheck_at`.
#[test]
fn a_kept_lock_is_looked_after_in_time_unless_the_manager_is_closing() {
    let (mut queue, runtime, now) = (Queue::default(), some_runtime(), Instant::now());
    let wake = enter(&mut queue, runtime).unwrap();
    assert!(queue.recheck_at("b", now + SECOND * 2) && was_woken(&wake));
    assert_eq!(queue.due(runtime, now, None).next, Some(now + SECOND * 2));
    assert!(queue.recheck_at("c", now + SECOND * 2) && queue.recheck_at("d", now + SECOND * 3));
    assert!(!was_woken(&wake));
    assert!(queue.recheck_at("a", now + SECOND) && was_woken(&wake));
    let due = queue.due(runtime, now + SECOND, None);
    assert_eq!((&*due.rechecks.join(" "), due.next), ("a", Some(now + SECOND * 2)));
    queue.closing = true;
    assert!(!queue.recheck_at("a", now));
    assert!(!was_woken(&wake));
    assert_eq!(queue.due(runtime, now + SECOND, None).next, Some(now + SECOND * 2));
}

/// Red without: `insert` or `wake`, in each of the ways into the queue.
#[test]
fn every_release_that_is_put_down_wakes_the_tasks() {
    let (mut queue, runtime, now) = (Queue::default(), some_runtime(), Instant::now());
    let wake = enter(&mut queue, runtime).unwrap();
    let paths: [fn(&mut Queue, PendingRelease, Instant); 3] =
        [Queue::release, Queue::put_back, |queue, release, now| {
            assert!(queue.release_again(release, now).is_none(), "there is time left");
        }];
    for put_down in paths {
        put_down(&mut queue, release(now + TTL), now);
        assert!(was_woken(&wake));
        assert_eq!(queue.due(runtime, now + SECOND, None).releases.len(), 1);
    }
    queue.put_back(release(now + TTL), now + SECOND * 9);
    assert!(was_woken(&wake) && queue.due(runtime, now, None).releases.is_empty());
    queue.retry_now();
    assert!(was_woken(&wake));
    assert_eq!(queue.due(runtime, now, None).releases.len(), 1);
}

/// Red without: any part of `needs_last_resort`.
#[test]
fn the_last_resort_is_needed_where_something_is_owed_that_no_task_sees_to() {
    let (mut queue, runtime, thread) = (Queue::default(), some_runtime(), some_runtime());
    assert!(!queue.needs_last_resort(), "no release is pending");
    queue.releases.sent_by_caller();
    assert!(queue.needs_last_resort());
    let wake = enter(&mut queue, runtime).unwrap();
    assert!(!queue.needs_last_resort(), "a task sends it");
    queue.last_resort = Some(LastResort { runtime: Some(thread), timed_out_before: false });
    let _of_thread = enter(&mut queue, thread);
    assert!(!queue.needs_last_resort());
    drop(queue.leave(runtime, &wake));
    assert!(queue.last_resort.is_some(), "that was not the thread's task");
    assert!(queue.needs_last_resort(), "the thread may be about to end");
    queue.remove(thread);
    assert!(queue.last_resort.is_none() && queue.is_driven_by_none());
}

/// Red without: the hand-off to the leases, or the wake after it.
#[test]
fn a_lease_that_was_not_renewed_wakes_the_tasks_when_it_is_handed_off() {
    let (mut queue, runtime, now) = (Queue::default(), some_runtime(), Instant::now());
    let wake = enter(&mut queue, runtime).unwrap();
    let fencing = FencingToken::from_counter(7);
    let fixed = GrantedLease {
        claim: claim(),
        fencing,
        requested_at: now,
        ttl: TTL,
        renew: false,
        max_hold: None,
        progress_within: None,
    };
    let fixed = Arc::new(LeaseState::new(fixed));
    let id = watch(&mut queue, fixed.clone(), now);
    let next = Arc::new(fixed.handed_off(fencing, TTL, None, now));
    queue.hand_off(id, &next, now);
    assert!(was_woken(&wake));
    assert!(Arc::ptr_eq(&queue.leases.hold(id).unwrap(), &next));
    assert_eq!(queue.due(runtime, now, None).renewals.len(), 1);
    let third = Arc::new(next.handed_off(fencing, TTL, None, now));
    queue.hand_off(id, &third, now);
    assert!(!was_woken(&wake), "it is renewed as it was");
}
