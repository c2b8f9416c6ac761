//! Tests of the reentrant mutex: a re-entry needs a hold, and has its fencing token.

use lockattr_history::Kind;

use crate::notation::broken;

#[test]
fn a_hold_may_be_reentered_repeatedly() {
    let text = "a:acquire=7 a:reenter=7 a:reenter=7 a:leave=ok a:leave=ok a:release=ok";
    assert_eq!(broken(text), []);
}

#[test]
fn another_chain_cannot_reenter_it() {
    let text = "a:acquire=7 b:reenter=7 b:leave=ok a:release=ok";
    assert_eq!(broken(text), [Kind::ReenteredUnheld]);
}

#[test]
fn no_process_reenters_an_ended_hold() {
    let released = "a:acquire=7 a:release=ok a:reenter=7";
    assert_eq!(broken(released), [Kind::ReenteredUnheld]);
    assert_eq!(broken("a:acquire=7 a:lost a:reenter=7"), [Kind::ReenteredUnheld]);
}

#[test]
fn a_re_entry_has_the_fencing_token_of_its_hold() {
    assert_eq!(broken("a:acquire=7 a:reenter=8"), [Kind::FenceChanged]);
    assert_eq!(broken("a:acquire=7 a:reenter=ok"), []);
}

#[test]
fn no_process_leaves_more_often_than_it_reentered() {
    assert_eq!(broken("a:acquire=7 a:leave=ok"), [Kind::LeftUnentered]);
    let twice = "a:acquire=7 a:reenter=7 a:leave=ok a:leave=ok";
    assert_eq!(broken(twice), [Kind::LeftUnentered]);
    assert_eq!(broken("a:acquire=7 a:reenter=no a:leave=ok"), [Kind::LeftUnentered]);
    assert_eq!(broken("a:acquire=7 a:reenter=unknown a:leave=ok"), []);
    let anew = "a:acquire=7 a:reenter=7 a:lost a:acquire=8 a:leave=ok";
    assert_eq!(broken(anew), [Kind::LeftUnentered]);
}

#[test]
fn a_reentry_proves_the_hold() {
    let beside = "a:acquire=1 b:acquire=2 b:check=ok a:reenter=1";
    assert_eq!(broken(beside), [Kind::TwoHolders]);
}
