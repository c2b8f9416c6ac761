//! The protocol holds for locks of every kind.
//!
//! Only the number of claims is small, each of which is made once, and the ticks: two for leases,
//! three for entries and queues.

use super::fault::{Fault, OF_MESSAGES, OF_PROCESSES};
use super::setting::Setting;
use super::settings::{BOTH, KEEPS, KEEPS_SHARED, P, PLAIN, R, SECOND, W, X};
use crate::claims::wait::holds;

/// Any one message is lost, or arrives at any later step; or a connection ends with all that is on
/// its way.
#[test]
fn exclusive_locks_and_a_message_that_is_lost_or_late() {
    holds(&Setting { claims: &[W, W, W], kinds: OF_MESSAGES, ..PLAIN }, 1_426_828, 1);
}

#[test]
fn exclusive_locks_under_two_faults() {
    holds(&Setting { claims: &[X, X], faults: 2, ..PLAIN }, 531_700, 3);
}

/// Two of the three claims belong to one process, with one connection, one flag and one record of
/// the tokens it has seen.
#[test]
fn two_claims_of_one_process() {
    let shares = Setting { claims: &[W, W, W], process: [0, 0, 1], faults: 0, ..PLAIN };
    holds(&shares, 821_906, 1);
    let of_one = Setting { claims: &[X, X], faults: 2, kinds: OF_PROCESSES, ..shares };
    holds(&of_one, 202_984, 1);
}

#[test]
fn a_reader_and_a_writer_under_two_faults() {
    holds(&Setting { claims: &[X, R], faults: 2, ..PLAIN }, 552_807, 3);
}

#[test]
fn a_writer_and_its_readers() {
    holds(
        &Setting { claims: &[W, R, R], kinds: &[Fault::Kill, Fault::Timeout], ..PLAIN },
        1_383_451,
        2,
    );
}

#[test]
fn permits() {
    holds(&Setting { claims: &[P, P, P], kinds: OF_PROCESSES, ..PLAIN }, 395_000, 1);
}

#[test]
fn a_claim_for_two_keys() {
    holds(&Setting { claims: &[BOTH, W, SECOND], kinds: &[Fault::Kill], ..PLAIN }, 897_150, 2);
    holds(&Setting { claims: &[BOTH, W], faults: 2, kinds: OF_PROCESSES, ..PLAIN }, 184_550, 3);
}

#[test]
fn two_claims_for_two_keys() {
    holds(&Setting { claims: &[BOTH, BOTH, W], faults: 0, ..PLAIN }, 194_024, 1);
}

/// The lock is marked while it is renewed, or it is not.
#[test]
fn renewals() {
    let renews = Setting { claims: &[W, W, W], kinds: &[Fault::Stop], renewals: 1, ..PLAIN };
    holds(&renews, 1_065_372, 2);
    holds(&Setting { claims: &[W, W], faults: 2, kinds: OF_PROCESSES, ..renews }, 186_179, 3);
}

/// An extended lease lasts longer than a queue, and an ordinary renewal may follow.
#[test]
fn extensions() {
    let extends = Setting { faults: 2, renewals: 2, extended: 4, kinds: OF_PROCESSES, ..PLAIN };
    holds(&Setting { claims: &[W, W], ..extends }, 455_866, 4);
    holds(&Setting { claims: &[R, W], ..extends }, 709_876, 4);
}

/// A request that was given up arrives over an old connection, after the extension of the lease.
#[test]
fn a_request_that_arrives_after_an_extension() {
    let kinds = &[Fault::Timeout];
    let late = Setting { claims: &[W, W], renewals: 1, extended: 4, kinds, ..PLAIN };
    holds(&Setting { in_order: false, may_leave: true, ..late }, 62_720, 2);
}

#[test]
fn locks_that_are_kept_after_their_release() {
    let kinds = &[Fault::Kill];
    holds(&Setting { claims: &[KEEPS, W, W], kinds, ..PLAIN }, 659_086, 4);
    let two = Setting { faults: 2, kinds: &[Fault::Kill, Fault::Timeout], ..PLAIN };
    holds(&Setting { claims: &[KEEPS_SHARED, W], ..two }, 75_601, 3);
}

/// A holder hands its lease to another caller of its process.
#[test]
fn hand_offs() {
    let hands = Setting { hand_offs: 1, ..PLAIN };
    holds(&Setting { claims: &[W, W, W], kinds: &[Fault::Stop], ..hands }, 819_351, 2);
    holds(
        &Setting { claims: &[W, W], faults: 2, renewals: 1, kinds: OF_PROCESSES, ..hands },
        239_007,
        3,
    );
}

/// A process that gives up may release its lock without serving the queue.
#[test]
fn quiet_releases() {
    let quiet = Setting { quiet: true, ..PLAIN };
    holds(&Setting { claims: &[X, W, W], kinds: &[Fault::Kill], ..quiet }, 774_603, 2);
    holds(&Setting { claims: &[X, R], faults: 2, kinds: OF_PROCESSES, ..quiet }, 197_235, 3);
}

/// Over several connections a command can arrive after the release that undoes it. Then a process
/// may have a lock or an entry that it does not know of, until that expires. All else holds.
#[test]
fn commands_that_come_after_their_release() {
    let kinds = &[Fault::Timeout, Fault::LoseUndone];
    let late = Setting { in_order: false, may_leave: true, kinds, ..PLAIN };
    holds(&Setting { claims: &[X, X], faults: 3, ..late }, 465_854, 3);
}
