//! A permit that bypasses the head: it reaches its waiter even if the head leaves meanwhile, and
//! nothing is lost.

use std::sync::Arc;

use crate::explore::{Waits, every_schedule, task};
use crate::lock::{Wants, World};
use crate::waiters::{join, wait_in_queue};

/// What the head does while a permit bypasses it.
#[derive(Clone, Copy, Debug)]
enum HeadAction {
    /// Asks the store, and gets the permit when the store grants it.
    Acquires,
    /// Leaves before it has asked.
    GivesUp,
}

/// One task holds the only permit and releases it. A head waits, with `behind` behind it. If
/// `newcomer`, another task joins.
fn check(action: HeadAction, behind: Vec<(Waits, bool)>, newcomer: bool) {
    every_schedule(&format!("past {action:?} {behind:?} {newcomer}"), move |ends| {
        let expected: String = ('a'..)
            .zip(&behind)
            .filter_map(|(caller, (waits, _))| (*waits == Waits::ForIt).then_some(caller))
            .collect();
        let world = World::of_a_permit(ends, &expected);
        let lease = world.acquire(world.first(), false);
        let head = world.first();
        for (caller, &(waits, fits)) in ('a'..).zip(&behind) {
            let waiter = world.behind(Wants { fits });
            let world = world.clone();
            task(move || wait_in_queue(&world, waiter, caller, waits));
        }
        if newcomer {
            let world = world.clone();
            task(move || join(&world, 'z', Waits::ForIt));
        }
        let head_task = Arc::clone(&world);
        task(move || match action {
            HeadAction::Acquires => head_task.acquire(head, false).used_by('h'),
            HeadAction::GivesUp => drop(head),
        });
        lease.used_by('0');
    });
}

/// Red without: the check of `selected` in `leave`; `remove_if_empty` in `pick_up` and in
/// `Waiter::drop`.
#[test]
fn a_lease_goes_past_a_head_that_may_leave_to_a_waiter_that_may_leave() {
    for action in [HeadAction::Acquires, HeadAction::GivesUp] {
        for waits in Waits::ALL {
            check(action, vec![(waits, true)], false);
            check(action, vec![(waits, true)], true);
        }
        check(action, vec![(Waits::ForIt, false)], true);
    }
}

/// Red without: the new head that `join` makes in a queue without one.
#[test]
fn two_waiters_of_whom_each_may_leave() {
    for action in [HeadAction::Acquires, HeadAction::GivesUp] {
        for waits in Waits::ALL {
            check(action, vec![(waits, true), (Waits::ForIt, true)], false);
            check(action, vec![(Waits::ForIt, true), (waits, true)], false);
        }
    }
}
