//! The protocol holds for locks of every kind. What is small is the number of claims, each of which is made once, and
//! the ticks: leases of two, entries and queues of three.

use super::fault::{Fault, OF_PROCESSES};
use super::setting::{Setting, Wants};
use super::settings::{BOTH, KEEPS, P, PLAIN, R, SECOND, W, X, holds};

#[test]
fn exclusive_locks() {
    holds(&Setting { claims: &[W, W, W], ..PLAIN }, 1, 2);
}

#[test]
fn exclusive_locks_that_are_given_up() {
    holds(&Setting { kinds: &[Fault::Timeout], ..PLAIN }, 1, 2);
}

#[test]
fn exclusive_locks_under_two_faults() {
    holds(&Setting { claims: &[X, X], faults: 2, ..PLAIN }, 1, 2);
}

/// Two of the three claims are of one process, which has one connection, one flag and one memory of numbers.
#[test]
fn two_claims_of_one_process() {
    let shares = Setting { claims: &[W, W, W], process: [0, 0, 1], ..PLAIN };
    holds(&Setting { kinds: &[Fault::Timeout], ..shares }, 1, 2);
}

#[test]
fn a_reader_and_a_writer_under_two_faults() {
    holds(&Setting { claims: &[X, R], faults: 2, ..PLAIN }, 1, 3);
}

#[test]
fn a_writer_and_its_readers() {
    holds(&Setting { claims: &[W, R, R], kinds: &[Fault::Kill, Fault::Timeout], ..PLAIN }, 1, 2);
}

#[test]
fn two_writers_and_a_reader() {
    holds(&Setting { claims: &[W, W, R], kinds: &[Fault::Kill, Fault::Timeout], ..PLAIN }, 1, 2);
}

#[test]
fn permits() {
    holds(&Setting { claims: &[P, P, P], kinds: OF_PROCESSES, ..PLAIN }, 1, 2);
}

#[test]
fn permits_and_a_writer() {
    holds(&Setting { claims: &[P, P, W], kinds: &[Fault::Kill, Fault::Timeout], ..PLAIN }, 1, 2);
}

#[test]
fn a_claim_for_two_keys() {
    holds(&Setting { claims: &[BOTH, W, SECOND], kinds: &[Fault::Kill], ..PLAIN }, 1, 2);
    holds(&Setting { claims: &[BOTH, W], faults: 2, kinds: OF_PROCESSES, ..PLAIN }, 1, 2);
}

#[test]
fn two_claims_for_two_keys() {
    holds(&Setting { claims: &[BOTH, BOTH, W], faults: 0, ..PLAIN }, 1, 2);
}

/// The lock is marked while it is renewed, or it is not.
#[test]
fn renewals() {
    let renews = Setting { claims: &[W, W, W], faults: 0, renewals: 1, ..PLAIN };
    holds(&renews, 1, 2);
    holds(&Setting { claims: &[W, W], faults: 2, kinds: OF_PROCESSES, ..renews }, 1, 2);
}

/// A lease that was extended lasts for longer than a queue, and an ordinary renewal may come behind.
#[test]
fn extensions() {
    let extends = Setting { renewals: 2, extended: 4, kinds: OF_PROCESSES, ..PLAIN };
    holds(&Setting { claims: &[W, W], ..extends }, 1, 2);
    holds(&Setting { claims: &[R, W], ..extends }, 1, 2);
}

#[test]
fn locks_that_are_kept_after_their_release() {
    const KEEPS_SHARED: Wants = Wants { keeps: 2, ..R };
    let kinds = &[Fault::Kill, Fault::Timeout];
    holds(&Setting { claims: &[KEEPS, W, W], kinds: &[Fault::Kill], ..PLAIN }, 1, 2);
    holds(&Setting { claims: &[KEEPS_SHARED, R, W], kinds, ..PLAIN }, 1, 2);
}

/// A holder passes its lease on to another caller of its process.
#[test]
fn hand_overs() {
    let hands = Setting { hand_overs: 1, ..PLAIN };
    holds(&Setting { claims: &[W, W, W], faults: 0, ..hands }, 1, 2);
    holds(&Setting { claims: &[W, W], faults: 2, renewals: 1, kinds: OF_PROCESSES, ..hands }, 1, 2);
}

/// Whoever gives up may free its lock and serve nobody.
#[test]
fn quiet_releases() {
    let quiet = Setting { quiet: true, ..PLAIN };
    holds(&Setting { claims: &[X, W, W], kinds: &[Fault::Kill], ..quiet }, 1, 2);
    holds(&Setting { claims: &[X, R], faults: 2, kinds: OF_PROCESSES, ..quiet }, 1, 2);
}

/// Over several connections a command can come after the release that undoes it. Then a process may
/// have a lock or an entry that it does not know of, until that ends. All else holds.
#[test]
fn commands_that_come_after_their_release() {
    let kinds = &[Fault::Timeout, Fault::LoseUndone];
    let late = Setting { in_order: false, may_leave: true, kinds, ..PLAIN };
    holds(&Setting { claims: &[X, X], faults: 3, ..late }, 1, 2);
}
