//! Tests of read/write locks and semaphores.

use lockattr_history::Kind;

use crate::notation::broken;

#[test]
fn many_may_share() {
    assert_eq!(broken("a:share=1 b:share=2 c:share=3 a:check=ok b:check=ok c:check=ok"), []);
}

#[test]
fn no_process_is_alone_while_others_share() {
    assert_eq!(broken("a:share=1 b:acquire=2 b:check=ok a:check=ok"), [Kind::TwoHolders]);
    assert_eq!(broken("a:acquire=1 b:share=2 b:check=ok a:check=ok"), [Kind::TwoHolders]);
    assert_eq!(broken("a:share=ok b:acquire=ok a:check=ok"), [Kind::TwoHolders]);
    assert_eq!(broken("a:acquire=ok b:share=ok a:check=ok"), [Kind::TwoHolders]);
}

#[test]
fn a_moment_alone_is_not_found_among_those_who_share_by_turns() {
    let turns = "a:share=ok b:acquire c:share=ok a:check=ok a:release=ok \
                 b:=ok c:check=ok c:release=ok";
    assert_eq!(broken(turns), [Kind::TwoHolders]);
    let gap = "a:share=ok b:acquire a:check=ok a:release=ok c:share=ok b:=ok c:check=ok";
    assert_eq!(broken(gap), []);
}

#[test]
fn as_many_hold_as_there_are_permits() {
    assert_eq!(broken("a:permit2=1 b:permit2=2 a:check=ok b:check=ok"), []);
    let one_left = "a:permit2=1 b:permit2=2 a:release=ok c:permit2=3 b:check=ok c:check=ok";
    assert_eq!(broken(one_left), []);
}

#[test]
fn one_more_than_there_are_permits_is_seen() {
    let three = "a:permit2=1 b:permit2=2 c:permit2=3 a:check=ok b:check=ok c:check=ok";
    assert_eq!(broken(three), [Kind::TooManyHolders]);
    let moment = "a:permit2=ok b:permit2=ok c:permit2=ok a:check=ok b:check=ok";
    assert_eq!(broken(moment), [Kind::TooManyHolders]);
}

#[test]
fn a_permit_and_an_exclusive_hold_do_not_go_together() {
    assert_eq!(broken("a:permit2=1 b:acquire=2 b:check=ok a:check=ok"), [Kind::TwoHolders]);
    assert_eq!(broken("a:acquire=1 b:permit2=2 b:check=ok a:check=ok"), [Kind::TwoHolders]);
}

#[test]
fn where_limits_differ_the_one_who_asked_for_more_may_have_come_last() {
    assert_eq!(broken("a:permit1=1 b:permit2=2 a:check=ok b:check=ok"), []);
    assert_eq!(broken("b:permit1 a:permit2=ok b:=ok a:check=ok b:check=ok"), []);
    let more = "a:permit2=1 b:permit2=2 c:permit1=3 a:check=ok b:check=ok c:check=ok";
    assert_eq!(broken(more), [Kind::TooManyHolders]);
}
