//! How often a lock is handed off inside a process while another process waits for it.

use std::time::Duration;

use crate::explore::{Waits, every_schedule, task};
use crate::lock::{LIMITS, NAME, NOW, Wants, World};
use crate::sync::Instant;
use crate::wait_queue::{Limits, Next};
use crate::waiters::wait_in_queue;

/// Two tasks wait here, and the notification that another process waits comes at any moment.
///
/// Red without: `handoffs >= count` in `Head::next` (or with `>`); the counting there; the note in
/// `WaitQueues::contended`.
#[test]
fn once_contended_a_lock_is_handed_off_so_often_before_the_next_caller_asks() {
    for name in [Some(NAME), None] {
        every_schedule(&format!("contended {name:?}"), move |ends| {
            let world = World::expecting(ends, "ab");
            let lock = world.acquire(world.first(), false);
            for caller in ['a', 'b'] {
                let waiter = world.behind(Wants { fits: true });
                let world = world.clone();
                task(move || wait_in_queue(&world, waiter, caller, Waits::ForIt));
            }
            let notifier = world.clone();
            task(move || {
                notifier.receive_contention(name);
            });
            lock.used_by('0');
        });
    }
}

/// The store reports with its grant that others wait.
///
/// Red without: the note of that in `Head::granted`.
#[test]
fn contention_reported_with_a_grant_counts_from_that_grant() {
    every_schedule("granted and contended", |ends| {
        let world = World::expecting(ends, "abc");
        let lock = world.acquire(world.first(), true);
        for caller in ['a', 'b', 'c'] {
            let waiter = world.behind(Wants { fits: true });
            let world = world.clone();
            task(move || wait_in_queue(&world, waiter, caller, Waits::ForIt));
        }
        lock.used_by('0');
    });
}

/// No other task runs: the test sets the time.
///
/// Red without: `now >= since + time` in `Head::next`, or with `>`.
#[test]
fn once_the_time_is_over_a_lock_is_not_handed_off() {
    every_schedule("time", |ends| {
        let world = World::new(ends);
        let head = world.first();
        let waiter = world.behind(Wants { fits: true });
        assert!(world.queues.contended(Some(NAME), NOW).is_empty());
        // A second message changes nothing: the time keeps running.
        let Limits { time, .. } = LIMITS;
        assert!(world.queues.contended(Some(NAME), NOW + time).is_empty());
        assert!(matches!(head.next(NOW + time, |_| true), Next::Store { contended: true }));
        let just_before = Instant(NOW.0 + time - Duration::from_nanos(1));
        assert!(matches!(head.next(just_before, |_| true), Next::Waiter(_)));
        drop(waiter);
    });
}

/// The notification comes while the store's reply is on its way to the queue.
///
/// Red without: `queue.contended.is_some()` in `Head::granted`.
#[test]
fn a_message_that_arrives_with_the_grant_is_not_forgotten() {
    every_schedule("granted while notified", |ends| {
        let world = World::new(ends);
        let head = world.first();
        let notifier = world.clone();
        task(move || notifier.receive_contention(Some(NAME)));
        world.acquire(head, false).used_by('0');
    });
}
