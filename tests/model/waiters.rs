//! The waiters behind a head: each is notified once or has left, and no hand-off is lost.

use std::sync::Arc;

use crate::explore::{Waits, every_schedule, task};
use crate::lock::{Lock, NAME, NOW, Waiter, Wants, World};
use crate::wait_queue::{Joined, PICK_UP_TIMEOUT, Received, Unclaimed};

/// Waits at `waiter` according to `waits`, and uses what comes.
pub(crate) fn wait_in_queue(world: &Arc<World>, mut waiter: Waiter, caller: char, waits: Waits) {
    let received = waits.wait(waiter.received());
    drop(waiter);
    match received {
        // A caller whose wait budget ended does not ask the store either, but gives up the head.
        Some(Received::Head(head)) if waits == Waits::Briefly => drop(head),
        Some(received) => world.received(caller, received),
        None => {}
    }
}

/// Joins the queue, as its head or behind it.
pub(crate) fn join(world: &Arc<World>, caller: char, waits: Waits) {
    match world.queues.join(NAME, Wants { fits: true }, None) {
        Joined::Head(head, cached) => world.reuse_or_acquire(head, cached).used_by(caller),
        Joined::Waiting(waiter) => wait_in_queue(world, waiter, caller, waits),
    }
}

/// What the head does while the others wait.
#[derive(Clone, Copy, Debug)]
enum First {
    /// Holds the lock, and releases it.
    Holds,
    /// Leaves before the store has replied.
    GivesUp,
}

/// These wait in this order, and the head acts. Those that stay hold the lock in their order.
fn check(name: &str, first: First, behind: Vec<(Waits, bool)>) {
    let expected: String = ('a'..)
        .zip(&behind)
        .filter_map(|(caller, (waits, _))| (*waits == Waits::ForIt).then_some(caller))
        .collect();
    every_schedule(&format!("{name} {first:?} {behind:?}"), move |ends| {
        let world = World::expecting(ends, &expected);
        let head = world.first();
        let lock = match first {
            First::Holds => Ok(world.acquire(head, false)),
            First::GivesUp => Err(head),
        };
        for (caller, &(waits, fits)) in ('a'..).zip(&behind) {
            let waiter = world.behind(Wants { fits });
            let world = world.clone();
            task(move || wait_in_queue(&world, waiter, caller, waits));
        }
        match lock {
            Ok(lock) => lock.used_by('0'),
            Err(head) => drop(head),
        }
    });
}

/// Red without: `selected` in `Waiter::drop` (a lock is handed to a waiter that is gone); `pick_up`
/// there (the turn of a waiter that is gone is lost); a new id for each waiter (another one's place
/// is given up).
#[test]
fn two_waiters_each_of_whom_may_leave_at_any_moment() {
    for first in [First::Holds, First::GivesUp] {
        for a in Waits::ALL {
            for b in Waits::ALL {
                check("waiters", first, vec![(a, true), (b, true)]);
            }
        }
    }
}

/// Red without: the end of the queue for newcomers (`push_front`).
#[test]
fn three_waiters_of_whom_one_may_leave_at_any_moment() {
    let stays = (Waits::ForIt, true);
    for first in [First::Holds, First::GivesUp] {
        check("waiters", first, vec![stays; 3]);
        for at in 0..3 {
            let mut behind = vec![stays; 3];
            behind[at].0 = Waits::Briefly;
            check("waiters", first, behind);
        }
    }
}

/// Red without: the check of `fits` in `Head::next`.
#[test]
fn a_waiter_that_cannot_be_handed_the_lease_asks_the_store_in_its_turn() {
    for a in Waits::ALL {
        check("misfits", First::Holds, vec![(a, false), (Waits::ForIt, true)]);
        check("misfits", First::Holds, vec![(Waits::ForIt, true), (a, false)]);
    }
}

/// Red without: the removal of the queue by the last to leave it, in the same step in which it
/// looks (no head is left); or if `join` waits behind a queue that exists (two heads).
#[test]
fn a_caller_that_arrives_during_a_hand_off_is_head_or_queued() {
    for a in [Waits::ForIt, Waits::Briefly] {
        for b in [Waits::ForIt, Waits::Briefly] {
            every_schedule(&format!("newcomers {a:?} {b:?}"), move |ends| {
                let world = World::new(ends);
                let lock = world.acquire(world.first(), false);
                for (caller, waits) in [('a', a), ('b', b)] {
                    let world = world.clone();
                    task(move || join(&world, caller, waits));
                }
                lock.used_by('0');
            });
        }
    }
}

/// The first waiter is polled before its turn is taken back, meanwhile, or long after others had
/// the lock.
///
/// Red without: `push_front` in `Waiter::pick_up` (a waiter that comes too late asks beside the
/// head).
#[test]
fn a_turn_is_withdrawn_from_a_waiter_that_may_still_resume() {
    for (first, fits) in [(First::Holds, true), (First::Holds, false), (First::GivesUp, true)] {
        for a in [Waits::ForIt, Waits::Briefly] {
            every_schedule(&format!("reclaimed {first:?} {fits} {a:?}"), move |ends| {
                let world = World::new(ends);
                let head = world.first();
                let lock = match first {
                    First::Holds => Ok(world.acquire(head, false)),
                    First::GivesUp => Err(head),
                };
                for (caller, waits) in [('a', a), ('b', Waits::ForIt)] {
                    let waiter = world.behind(Wants { fits });
                    let world = world.clone();
                    task(move || wait_in_queue(&world, waiter, caller, waits));
                }
                let reclaimer = world.clone();
                task(move || {
                    let first: Unclaimed<Wants, Lock> = reclaimer.queues.check_unclaimed(NAME, NOW);
                    drop(first);
                    drop(reclaimer.queues.reclaim_all(NOW + PICK_UP_TIMEOUT));
                });
                match lock {
                    Ok(lock) => lock.used_by('0'),
                    Err(head) => drop(head),
                }
            });
        }
    }
}
