//! The protocol holds in the settings that have millions of states.
//!
//! Run with `cargo test -p lockattr-models free_path -- --ignored`.

use super::fault::Fault;
use super::setting::{Setting, Wants};
use super::settings::{FAILS, KEEPS_SHARED, LAGS, PLAIN, R, W, X};
use crate::claims::Mode;
use crate::claims::wait::holds;

#[test]
#[ignore = "millions of states"]
fn exclusive_locks() {
    holds(&Setting { claims: &[W, W, W], ..PLAIN }, 3_129_563, 2);
}

#[test]
#[ignore = "millions of states"]
fn exclusive_locks_that_are_given_up() {
    holds(&Setting { kinds: &[Fault::Timeout], ..PLAIN }, 1_563_346, 1);
}

#[test]
#[ignore = "millions of states"]
fn two_writers_and_a_reader() {
    holds(
        &Setting { claims: &[W, W, R], kinds: &[Fault::Kill, Fault::Timeout], ..PLAIN },
        2_316_801,
        2,
    );
}

#[test]
#[ignore = "millions of states"]
fn permits_and_a_writer() {
    const ONLY: Wants = Wants { mode: Mode::Permits(1), ..W };
    let kinds = &[Fault::Kill, Fault::Timeout];
    holds(&Setting { claims: &[ONLY, ONLY, W], kinds, ..PLAIN }, 1_545_849, 2);
}

#[test]
#[ignore = "millions of states"]
fn shared_locks_that_are_kept_after_their_release() {
    let kinds = &[Fault::Kill, Fault::Timeout];
    holds(&Setting { claims: &[KEEPS_SHARED, R, W], kinds, ..PLAIN }, 2_804_982, 3);
}

/// Some locks are gone; the tokens grow all the same.
#[test]
#[ignore = "millions of states"]
fn a_flush() {
    holds(
        &Setting { claims: &[W, W, W], kinds: &[Fault::Flush], faults: 2, ..PLAIN },
        1_739_548,
        1,
    );
}

/// Small: leases and entries last one tick.
#[test]
#[ignore = "millions of states"]
fn a_failover_among_three() {
    let small = Setting { ttl: 1, life: 1, kept: 1, ..LAGS };
    holds(&Setting { claims: &[W, W, W], kinds: FAILS, ..small }, 1_818_281, 1);
}

/// One process has all claims, and may receive a reply of the old server after it has connected to
/// the new one.
#[test]
#[ignore = "millions of states"]
fn a_failover_between_claims_of_one_process() {
    let one = Setting { claims: &[X, X], process: [0, 0, 0], ..LAGS };
    holds(&Setting { kinds: FAILS, faults: 2, ..one }, 1_854_066, 3);
}
