//! At most one attempt holds the lock at a time.
//!
//! Exclusion depends on time; fencing covers the case in which the clocks are not as assumed.

use super::scheme::{Checks, Clock, PLAIN, Setting};
use super::world::Phase;
use crate::search::explore;

/// Leases of two ticks, by clocks that agree.
const EXACT: Setting = Setting {
    checks: Checks::Exclusion,
    starts: &[[0, 0, 0]],
    clock: Clock { until: 4, ttl: 2, drift: 0, margin: 0, rest: 0 },
    ..PLAIN
};

/// A holder assumes its lease to end before any node does.
const DRIFTING: Clock = Clock { until: 6, ttl: 3, drift: 1, margin: 1, rest: 0 };

#[test]
fn leases_exclude() {
    let exact = explore(&EXACT);
    exact.holds(4_321);
    assert!(exact.some(|world| world.count(Phase::Issued) == 2), "one after the other");
    explore(&Setting { clock: DRIFTING, ..EXACT }).holds(13_410);
}

#[test]
fn a_drift_that_the_holder_does_not_allow_for_is_wrong() {
    let clock = Clock { margin: 0, ..DRIFTING };
    explore(&Setting { clock, ..EXACT }).is_wrong("both hold", 12);
}

#[test]
fn a_node_that_restarted_empty_has_to_rest_for_a_whole_lease() {
    let restarts = |rest| Setting { restarts: 1, clock: Clock { rest, ..EXACT.clock }, ..EXACT };
    explore(&restarts(0)).is_wrong("both hold", 9);
    explore(&restarts(1)).is_wrong("both hold", 11);
    explore(&restarts(2)).holds(27_429);
}

/// The late release of the earlier attempt frees what this one has just been granted.
#[test]
fn a_release_that_comes_late_is_wrong_under_the_same_token() {
    let retry = Setting { tokens: &[1, 1, 2], ..EXACT };
    explore(&retry).is_wrong("both hold", 12);
    explore(&Setting { in_order: true, ..retry }).holds(906_462);
}

#[test]
fn a_release_that_comes_late_does_no_harm_under_a_token_for_each_attempt() {
    explore(&Setting { tokens: &[1, 2, 3], together: 2, ..EXACT }).holds(2_703_487);
}

/// As long as leases last as long as assumed, tokens grow in the order in which they are issued.
#[test]
fn leases_order_the_tokens() {
    let order = Setting { checks: Checks::Order, starts: &[[5, 0, 0], [0, 1, 1]], ..EXACT };
    explore(&order).holds(58_763);
    explore(&Setting { clock: DRIFTING, ..order }).holds(187_609);
    let clock = Clock { margin: 0, ..DRIFTING };
    explore(&Setting { clock, ..order }).is_wrong("not above one issued earlier", 12);
}
