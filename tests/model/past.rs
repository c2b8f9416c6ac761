//! A permit that bypasses the head: it reaches its waiter even if the head leaves meanwhile, and
//! nothing is lost.

use std::sync::Arc;

use crate::explore::{Waits, every_schedule, task};
use crate::lock::{Wants, World};
use crate::waiters::{join, stand};

/// What the head does while a permit bypasses it.
#[derive(Clone, Copy, Debug)]
enum Head {
    /// Asks the store, and gets the permit when the store grants it.
    Asks,
    /// Leaves before it has asked.
    GivesUp,
}

/// One task holds the only permit and releases it. A head waits, with `behind` behind it. If
/// `comes`, another task joins.
fn check(head: Head, behind: Vec<(Waits, bool)>, comes: bool) {
    every_schedule(&format!("past {head:?} {behind:?} {comes}"), move |ends| {
        let stay: String = ('a'..)
            .zip(&behind)
            .filter_map(|(who, (waits, _))| (*waits == Waits::ForIt).then_some(who))
            .collect();
        let world = World::of_a_permit(ends, &stay);
        let lease = world.ask(world.first(), false);
        let ahead = world.first();
        for (who, &(waits, fits)) in ('a'..).zip(&behind) {
            let place = world.behind(Wants { fits });
            let world = world.clone();
            task(move || stand(&world, place, who, waits));
        }
        if comes {
            let world = world.clone();
            task(move || join(&world, 'z', Waits::ForIt));
        }
        let asks = Arc::clone(&world);
        task(move || match head {
            Head::Asks => asks.ask(ahead, false).used_by('h'),
            Head::GivesUp => drop(ahead),
        });
        lease.used_by('0');
    });
}

/// Red without: the check of `selected` in `leave`; `remove_if_empty` in `pick_up` and in
/// `Waiter::drop`.
#[test]
fn a_lease_goes_past_a_head_that_may_leave_to_a_waiter_that_may_leave() {
    for head in [Head::Asks, Head::GivesUp] {
        for waits in Waits::ALL {
            check(head, vec![(waits, true)], false);
            check(head, vec![(waits, true)], true);
        }
        check(head, vec![(Waits::ForIt, false)], true);
    }
}

/// Red without: the new head that `join` makes in a queue without one.
#[test]
fn two_waiters_of_whom_each_may_leave() {
    for head in [Head::Asks, Head::GivesUp] {
        for waits in Waits::ALL {
            check(head, vec![(waits, true), (Waits::ForIt, true)], false);
            check(head, vec![(Waits::ForIt, true), (waits, true)], false);
        }
    }
}
