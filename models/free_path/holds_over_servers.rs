//! The protocol holds when a server loses what it had, is replaced, or sends commands on to another.

use super::fault::Fault;
use super::setting::Setting;
use super::settings::{LAGS, PLAIN, W, X, holds};

const FAILS: &[Fault] = &[Fault::Failover, Fault::RoleChange];

/// Some of what claims had is gone; the numbers grow all the same.
#[test]
fn a_flush() {
    holds(
        &Setting { claims: &[W, W, W], kinds: &[Fault::Flush], faults: 2, ..PLAIN },
        1_739_548,
        1,
    );
}

/// One half of a pair is redirected, twice, with a message lost besides.
#[test]
fn a_slot_that_moves() {
    let kinds = &[Fault::RedirectSet, Fault::RedirectIncrement, Fault::Timeout];
    holds(&Setting { claims: &[W, W], kinds, faults: 3, ..PLAIN }, 119_257, 1);
}

/// What the old server granted last is lost with it; but no number is given twice.
#[test]
fn a_failover() {
    let fails = Setting { kinds: FAILS, ..LAGS };
    holds(&fails, 151_479, 2);
    holds(&Setting { lag: 1, ..fails }, 191_300, 2);
}

/// Small: leases and entries of one tick.
#[test]
fn a_failover_among_three() {
    let small = Setting { ttl: 1, life: 1, kept: 1, ..LAGS };
    holds(&Setting { claims: &[W, W, W], kinds: FAILS, ..small }, 1_818_281, 1);
}

#[test]
fn a_failover_and_another_fault() {
    let kinds = &[Fault::Failover, Fault::RoleChange, Fault::Timeout, Fault::Kill];
    holds(&Setting { kinds, faults: 2, ..LAGS }, 785_280, 3);
}

/// One process has all claims, and may hear an answer of the old server after it has connected to the new one.
#[test]
fn a_failover_between_claims_of_one_process() {
    let one = Setting { claims: &[X, X], process: [0, 0, 0], ..LAGS };
    holds(&Setting { kinds: FAILS, faults: 2, ..one }, 1_854_066, 3);
}

/// What counts only when the replica has it is lost with no server. No holder is robbed.
#[test]
fn leases_that_wait_for_the_replica() {
    let waits = Setting { waits_for_replica: true, kinds: FAILS, ..LAGS };
    holds(&Setting { lag: 1, ..waits }, 153_451, 2);
    holds(&Setting { renewals: 1, ..waits }, 105_106, 2);
    let kinds = &[Fault::Failover, Fault::RoleChange, Fault::Timeout, Fault::Kill];
    holds(&Setting { kinds, faults: 2, ..waits }, 466_366, 2);
}
