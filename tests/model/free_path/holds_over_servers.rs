//! The protocol holds when a server loses its data, is replaced, or redirects commands.

use super::fault::Fault;
use super::setting::Setting;
use super::settings::{FAILS, LAGS, PLAIN, R, SECOND, W};
use crate::claims::wait::holds;

/// Some locks are gone; the tokens grow all the same.
#[test]
fn a_flush() {
    holds(&Setting { claims: &[W, W], kinds: &[Fault::Flush], faults: 3, ..PLAIN }, 41_327, 1);
    holds(&Setting { claims: &[R, W], kinds: &[Fault::Flush], faults: 2, ..PLAIN }, 32_490, 1);
}

/// One half of a pair is redirected, twice, and a message is lost.
#[test]
fn a_slot_that_moves() {
    let kinds = &[Fault::RedirectSet, Fault::RedirectIncrement, Fault::Timeout];
    holds(&Setting { claims: &[W, W], kinds, faults: 3, ..PLAIN }, 119_257, 1);
}

/// The last grants of the old server are lost with it, but no token is given twice.
#[test]
fn a_failover() {
    let fails = Setting { kinds: FAILS, ..LAGS };
    holds(&fails, 151_479, 2);
    holds(&Setting { lag: 1, ..fails }, 191_300, 2);
}

#[test]
fn a_failover_and_another_fault() {
    let kinds = &[Fault::Failover, Fault::RoleChange, Fault::Timeout, Fault::Kill];
    holds(&Setting { kinds, faults: 2, ..LAGS }, 785_280, 3);
}

/// A proxy hides the failover from one process, which knows its own tokens.
#[test]
fn a_failover_that_a_proxy_hides() {
    let hides = Setting { kinds: &[Fault::Swap], ..LAGS };
    holds(&Setting { claims: &[W, W], process: [0; 3], faults: 2, ..hides }, 167_785, 2);
}

/// A cluster: two locks in two slots, each with its own counter.
#[test]
fn a_failover_of_two_slots() {
    let slots = Setting { slots: true, kinds: FAILS, ..LAGS };
    holds(&Setting { claims: &[W, SECOND], process: [0; 3], ..slots }, 315_713, 1);
    holds(&Setting { claims: &[W, SECOND], faults: 2, ..slots }, 911_836, 1);
}

/// A lease that counts only when the replica has it is not lost with the server. No holder is
/// robbed.
#[test]
fn leases_that_wait_for_the_replica() {
    let waits = Setting { waits_for_replica: true, kinds: FAILS, ..LAGS };
    holds(&Setting { lag: 1, ..waits }, 153_451, 2);
    holds(&Setting { renewals: 1, ..waits }, 105_106, 2);
    let kinds = &[Fault::Failover, Fault::RoleChange, Fault::Timeout, Fault::Kill];
    holds(&Setting { kinds, faults: 2, ..waits }, 466_366, 2);
}
