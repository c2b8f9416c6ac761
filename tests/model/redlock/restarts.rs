//! A node that restarts empty at any step: its effect on tokens, and how a rest before the node
//! counts again helps, without hints.

use super::scheme::{Clock, GAPS, PLAIN, Restarts, Setting};
use crate::search::explore;

/// A rest as long as the leases, which may end at any time.
const REST: Clock = Clock { until: 4, ttl: 2, drift: 2, margin: 0, rest: 2 };

/// A token was in the counters of two nodes, and is now in one.
#[test]
fn a_counter_that_is_lost_is_wrong() {
    let empty = Setting { starts: &[[0, 0, 0]], restarts: 1, ..PLAIN };
    explore(&empty).is_wrong("issued twice", 9);
}

/// Only the counter has to survive: lost locks are like ended leases.
#[test]
fn a_counter_that_survives_is_enough() {
    let durable = Setting { starts: GAPS, restarts: 1, restart: Restarts::Durable, ..PLAIN };
    explore(&durable).holds(646_242);
}

/// It keeps holders apart (`exclusion.rs`), but restores no counter.
#[test]
fn a_rest_alone_is_wrong() {
    let rested = Setting { restarts: 1, clock: REST, ..PLAIN };
    explore(&rested).is_wrong("not above one issued before it began", 15);
}

#[test]
fn a_rest_and_then_the_counters_of_the_others_holds_for_one_node_at_a_time() {
    let learns = Setting { restarts: 1, clock: REST, restart: Restarts::LearnsAfterRest, ..PLAIN };
    explore(&learns).holds(3_439_423);
    let twice = Setting { restarts: 2, ..learns };
    explore(&twice).is_wrong("not above one issued before it began", 16);
}

/// A token that was accepted here before the restart is issued after the others' counters were
/// read.
#[test]
fn the_counters_of_the_others_before_the_rest_are_wrong() {
    let learns = Setting { restarts: 1, clock: REST, restart: Restarts::LearnsAtOnce, ..PLAIN };
    explore(&learns).is_wrong("not above one issued before it began", 17);
}
