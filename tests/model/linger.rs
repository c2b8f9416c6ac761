//! A lock that is kept here for the next call: it is found by who comes, or given back.

use crate::explore::{Waits, every_schedule, task};
use crate::lock::{NAME, NOW, World};
use crate::wait_queue::CachedLock;
use crate::waiters::join;

/// Red without: the look in `Head::keep` at which process waits, or taking it in `WaitQueues::join`.
#[test]
fn a_process_that_comes_while_a_lock_is_put_aside_finds_it() {
    for b in Waits::ALL {
        every_schedule(&format!("kept {b:?}"), move |ends| {
            let world = World::that_keeps(ends);
            let lock = world.ask(world.first(), false);
            for (who, waits) in [('a', Waits::ForIt), ('b', b)] {
                let world = world.clone();
                task(move || join(&world, who, waits));
            }
            lock.used_by('0');
        });
    }
}

/// Red without: the look in `Head::keep` at whether it is wanted.
#[test]
fn what_another_process_wants_is_not_kept() {
    every_schedule("kept and wanted", |ends| {
        let world = World::that_keeps(ends);
        let lock = world.ask(world.first(), false);
        let told = world.clone();
        task(move || told.told_that_it_is_wanted(Some(NAME)));
        lock.used_by('0');
    });
}

/// The same with who comes just then and finds it.
///
/// Red without: taking what is kept and the note that it is wanted in one step, in `WaitQueues::wanted`.
#[test]
fn a_process_that_finds_a_kept_lock_knows_that_another_process_waits() {
    every_schedule("kept, wanted and found", |ends| {
        let world = World::that_keeps(ends);
        let lock = world.ask(world.first(), false);
        let told = world.clone();
        task(move || told.told_that_it_is_wanted(Some(NAME)));
        let comes = world.clone();
        task(move || join(&comes, 'a', Waits::ForIt));
        lock.used_by('0');
    });
}

/// It is kept long enough just when somebody comes.
///
/// Red without: taking the line away with what was kept, in `WaitQueues::kept`.
#[test]
fn whose_time_is_over_is_given_back_or_found() {
    every_schedule("kept long enough", |ends| {
        let world = World::that_keeps(ends);
        let lock = world.ask(world.first(), false);
        let over = world.clone();
        task(move || match over.lines.cached(NAME, NOW) {
            CachedLock::Over(lock) => drop(lock),
            CachedLock::Until(until) => panic!("it is kept until {until:?}"),
            CachedLock::Gone => {}
        });
        let comes = world.clone();
        task(move || join(&comes, 'a', Waits::ForIt));
        lock.used_by('0');
    });
}
