//! The protocol holds: the longest wait is one lease of a dead process, and one recheck.
//!
//! `LOCKATTR_MODELS_FAULTS=1` allows that many faults more in each test, and takes minutes and some
//! gigabytes.

use super::setting::{Fault, OF_PROCESSES, Setting};
use super::settings::{BOTH, P, PLAIN, R, READS_BOTH, READS_SECOND, SECOND, W, X, holds};

#[test]
fn exclusive_locks() {
    holds(&PLAIN, 1_519_539, 2);
}

#[test]
fn exclusive_locks_under_three_faults() {
    holds(&Setting { claims: &[X, X], faults: 3, ..PLAIN }, 548_953, 3);
}

#[test]
fn a_reader_and_a_writer_under_two_faults() {
    holds(&Setting { claims: &[X, R], faults: 2, ..PLAIN }, 280_457, 3);
}

#[test]
fn a_writer_and_its_readers() {
    let kinds = &[Fault::Kill, Fault::Timeout];
    holds(&Setting { claims: &[W, R, R], kinds, ..PLAIN }, 1_636_313, 2);
}

#[test]
fn permits() {
    holds(&Setting { claims: &[P, P, P], kinds: OF_PROCESSES, ..PLAIN }, 796_786, 1);
}

#[test]
fn claims_for_several_keys() {
    holds(&Setting { claims: &[BOTH, W, SECOND], kinds: &[Fault::Kill], ..PLAIN }, 430_190, 2);
    holds(&Setting { claims: &[BOTH, BOTH, W], faults: 0, ..PLAIN }, 173_705, 1);
    holds(&Setting { claims: &[W, READS_BOTH, READS_SECOND], faults: 0, ..PLAIN }, 255_813, 1);
}

/// A monitoring tool subscribes to every channel, so grants to the dead seem to be received. Two
/// dead waiters cost two leases if an entry lasts longer than a lease.
#[test]
fn a_store_that_is_monitored() {
    let kinds = &[Fault::Kill];
    let dead = Setting { claims: &[W, W, W], faults: 2, kinds, ..PLAIN };
    holds(&dead, 86_049, 2);
    holds(&Setting { monitored: true, ..dead }, 86_049, 3);
}

/// Two claims stop at once, as those of one process do: one has the lock, or may get it, and the
/// other waits. Together they cost one lease and one recheck.
#[test]
fn claims_of_a_process_that_stops() {
    let stopped = Setting { faults: 2, kinds: &[Fault::Stop], ttl: 2, life: 2, ..PLAIN };
    holds(&Setting { claims: &[W, R, W], ..stopped }, 1_253_615, 2);
    holds(&Setting { claims: &[P, W, R], ..stopped }, 2_447_169, 2);
}

/// Over several connections a request can arrive after the release that undoes it. Then a process
/// may have a lock or an entry that it does not know of, until that expires. All else holds.
#[test]
fn requests_that_arrive_after_their_release() {
    let kinds = &[Fault::Timeout, Fault::LoseUndone];
    let late = Setting { in_order: false, may_leave: true, kinds, ..PLAIN };
    holds(&Setting { claims: &[X, X], faults: 3, ..late }, 96_360, 3);
}
