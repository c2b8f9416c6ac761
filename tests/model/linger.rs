//! A lock that is cached here for the next call: the next caller finds it, or it is released.

use crate::explore::{Waits, every_schedule, task};
use crate::lock::{NAME, NOW, World};
use crate::wait_queue::CachedLock;
use crate::waiters::join;

/// Red without: the check in `Head::cache` for waiters; or taking the lock in `WaitQueues::join`.
#[test]
fn a_caller_that_arrives_while_a_lock_is_being_cached_finds_it() {
    for b in Waits::ALL {
        every_schedule(&format!("cached {b:?}"), move |ends| {
            let world = World::that_caches(ends);
            let lock = world.acquire(world.first(), false);
            for (caller, waits) in [('a', Waits::ForIt), ('b', b)] {
                let world = world.clone();
                task(move || join(&world, caller, waits));
            }
            lock.used_by('0');
        });
    }
}

/// Red without: the check in `Head::cache` for contention.
#[test]
fn a_contended_lock_is_not_cached() {
    every_schedule("cached and contended", |ends| {
        let world = World::that_caches(ends);
        let lock = world.acquire(world.first(), false);
        let notifier = world.clone();
        task(move || notifier.receive_contention(Some(NAME)));
        lock.used_by('0');
    });
}

/// The same with a caller that comes at that moment and finds the lock.
///
/// Red without: taking the cached lock and noting the contention in one step, in
/// `WaitQueues::contended`.
#[test]
fn a_caller_that_finds_a_cached_lock_knows_that_another_process_waits() {
    every_schedule("cached, contended and found", |ends| {
        let world = World::that_caches(ends);
        let lock = world.acquire(world.first(), false);
        let notifier = world.clone();
        task(move || notifier.receive_contention(Some(NAME)));
        let newcomer = world.clone();
        task(move || join(&newcomer, 'a', Waits::ForIt));
        lock.used_by('0');
    });
}

/// The cached lock expires at the moment at which a caller comes.
///
/// Red without: removing the queue with the cached lock, in `WaitQueues::check_cached`.
#[test]
fn a_cached_lock_whose_time_is_over_is_released_or_found() {
    every_schedule("cached long enough", |ends| {
        let world = World::that_caches(ends);
        let lock = world.acquire(world.first(), false);
        let over = world.clone();
        task(move || match over.queues.check_cached(NAME, NOW) {
            CachedLock::Expired(lock) => drop(lock),
            CachedLock::Until(until) => panic!("it is cached until {until:?}"),
            CachedLock::Gone => {}
        });
        let newcomer = world.clone();
        task(move || join(&newcomer, 'a', Waits::ForIt));
        lock.used_by('0');
    });
}
