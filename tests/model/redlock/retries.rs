//! A client that asks again because replies were lost: what its next attempt may use.

use super::scheme::{Accepts, Counts, PLAIN, Scheme, Setting};
use crate::search::explore;

/// One of two claims is tried twice, in every order in which the attempts can begin.
const ORDERS: [&[u8]; 3] = [&[1, 1, 2], &[1, 2, 1], &[1, 2, 2]];

/// The smallest gaps: whatever is wrong here is wrong with those.
const SMALL_GAPS: &[[u8; 3]] = &[[0, 0, 0], [0, 0, 1], [0, 1, 1]];

const RETRY: Setting = Setting { starts: SMALL_GAPS, tokens: &[1, 2, 1], ..PLAIN };

/// The lock behind a reply to an earlier attempt may have lapsed before this one began.
#[test]
fn counting_the_answers_of_an_earlier_attempt_is_wrong() {
    let mixed = Setting { mixes: true, ..RETRY };
    explore(&mixed).is_wrong("not above one issued before it began", 11);
}

/// The earlier request acquires the lock again under the same token, after another client held it.
/// The node cannot tell that its lock is not the one that the token was computed from.
#[test]
fn the_same_token_is_wrong_where_an_earlier_request_can_come_late() {
    for tokens in ORDERS {
        explore(&Setting { tokens, ..RETRY }).is_wrong("issued twice", 16);
    }
}

#[test]
fn the_same_token_holds_where_requests_keep_their_order() {
    for (tokens, states) in ORDERS.into_iter().zip([752_575, 953_958, 953_958]) {
        explore(&Setting { tokens, in_order: true, ..RETRY }).holds(states);
    }
}

/// Sound, but useless if a counter serves many locks, because they pass the token all the time.
#[test]
fn the_same_token_holds_where_a_node_refuses_what_its_counter_has_passed() {
    let (accepts, counts) = (Accepts::OwnerNotPassed, Counts::Answered);
    let scheme = Scheme::WriteBack { at_once: true, accepts, counts };
    explore(&Setting { scheme, starts: &[[0, 1, 1]], ..RETRY }).holds(817_881);
}

#[test]
fn a_token_for_each_attempt_holds() {
    explore(&Setting { tokens: &[1, 2, 3], together: 2, starts: &[[0, 1, 1]], ..PLAIN })
        .holds(2_191_034);
}
