//! How often a lock is handed off inside a process while another process waits for it.

use std::time::Duration;

use crate::explore::{Waits, every_schedule, task};
use crate::lock::{LIMITS, NAME, NOW, Wants, World};
use crate::sync::Instant;
use crate::wait_queue::{Limits, Next};
use crate::waiters::stand;

/// Two tasks wait here, and the notification that another process waits comes at any moment.
///
/// Red without: `passed >= count` in `Head::next` (or with `>`); the counting there; the note in
/// `WaitQueues::contended`.
#[test]
fn once_contended_a_lock_is_handed_off_so_often_before_the_next_caller_asks() {
    for name in [Some(NAME), None] {
        every_schedule(&format!("wanted {name:?}"), move |ends| {
            let world = World::expecting(ends, "ab");
            let lock = world.ask(world.first(), false);
            for who in ['a', 'b'] {
                let place = world.behind(Wants { fits: true });
                let world = world.clone();
                task(move || stand(&world, place, who, Waits::ForIt));
            }
            let told = world.clone();
            task(move || {
                told.told_that_it_is_wanted(name);
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
    every_schedule("granted and wanted", |ends| {
        let world = World::expecting(ends, "abc");
        let lock = world.ask(world.first(), true);
        for who in ['a', 'b', 'c'] {
            let place = world.behind(Wants { fits: true });
            let world = world.clone();
            task(move || stand(&world, place, who, Waits::ForIt));
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
        let ahead = world.first();
        let place = world.behind(Wants { fits: true });
        assert!(world.lines.contended(Some(NAME), NOW).is_empty());
        // A second message changes nothing: the time keeps running.
        let Limits { time, .. } = LIMITS;
        assert!(world.lines.contended(Some(NAME), NOW + time).is_empty());
        assert!(matches!(ahead.next(NOW + time, |_| true), Next::Store { contended: true }));
        let just_before = Instant(NOW.0 + time - Duration::from_nanos(1));
        assert!(matches!(ahead.next(just_before, |_| true), Next::Hand(_)));
        drop(place);
    });
}

/// The notification comes while the store's reply is on its way to the queue.
///
/// Red without: `queue.contended.is_some()` in `Head::granted`.
#[test]
fn a_message_that_arrives_with_the_grant_is_not_forgotten() {
    every_schedule("granted while told", |ends| {
        let world = World::new(ends);
        let ahead = world.first();
        let told = world.clone();
        task(move || told.told_that_it_is_wanted(Some(NAME)));
        world.ask(ahead, false).used_by('0');
    });
}
