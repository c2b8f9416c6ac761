//! A node that restarts empty, while each attempt sends its client's clock: how long the node has
//! to rest, and what the clocks must guarantee.

use super::scheme::{Clock, Hints, PLAIN, Setting};
use super::world::{Phase, World};
use crate::search::explore;

const TTL: u8 = 2;

/// One node restarts. Clocks show up to `ahead` ticks more than the time, and a tick adds `tick` to
/// a hint. Leases end at any time.
fn restarts(rest: u8, ahead: u8, tick: u8) -> Setting {
    Setting {
        starts: &[[0, 0, 0]],
        restarts: 1,
        hints: Hints::Clock { ahead, tick },
        clock: Clock { until: TTL + rest, ttl: TTL, drift: TTL, margin: 0, rest },
        ..PLAIN
    }
}

/// Two attempts that began at the same time have the same hint; only a counter tells them apart.
#[test]
fn the_same_clock_alone_is_wrong() {
    explore(&restarts(0, 0, 4)).is_wrong("issued twice", 9);
    explore(&restarts(TTL - 1, 0, 4)).is_wrong("issued twice", 11);
}

#[test]
fn the_same_clock_and_a_rest_as_long_as_a_lease_holds() {
    let rested = restarts(TTL, 0, 4);
    let explored = explore(&rested);
    explored.holds(341_543);
    let after = |world: &World| world.restarts == 0 && world.count(Phase::Issued) == 2;
    assert!(explored.some(after));
    explore(&Setting { restarts: 2, ..rested }).holds(777_068);
}

/// The rest must be longer by the difference of the clocks.
#[test]
fn clocks_that_differ_want_a_longer_rest() {
    explore(&restarts(TTL, 1, 4)).is_wrong("issued twice", 12);
    explore(&restarts(TTL + 1, 1, 4)).holds(1_577_558);
}

/// Counters that were advanced more often than the clock are ahead of every hint.
#[test]
fn counters_that_outrun_the_clock_are_wrong() {
    explore(&restarts(TTL, 0, 1)).is_wrong("issued twice", 12);
}
