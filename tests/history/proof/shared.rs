//! Tests of read/write locks and semaphores.

use lockattr_history::Kind;

use crate::notation::broken;

#[test]
fn many_may_share() {
    assert_eq!(broken("a:share=1 b:share=2 c:share=3 a:check=ok b:check=ok c:check=ok"), []);
}

#[test]
fn an_exclusive_holder_excludes_shared_ones() {
    assert_eq!(broken("a:share=1 b:acquire=2 b:check=ok a:check=ok"), [Kind::TwoHolders]);
    assert_eq!(broken("a:acquire=1 b:share=2 b:check=ok a:check=ok"), [Kind::TwoHolders]);
    assert_eq!(broken("a:share=ok b:acquire=ok a:check=ok"), [Kind::TwoHolders]);
    assert_eq!(broken("a:acquire=ok b:share=ok a:check=ok"), [Kind::TwoHolders]);
}

#[test]
fn an_exclusive_hold_does_not_fit_between_overlapping_shared_ones() {
    let turns = "a:share=ok b:acquire c:share=ok a:check=ok a:release=ok \
                 b:=ok c:check=ok c:release=ok";
    assert_eq!(broken(turns), [Kind::TwoHolders]);
    let gap = "a:share=ok b:acquire a:check=ok a:release=ok c:share=ok b:=ok c:check=ok";
    assert_eq!(broken(gap), []);
}

#[test]
fn there_may_be_as_many_holders_as_permits() {
    assert_eq!(broken("a:permit2=1 b:permit2=2 a:check=ok b:check=ok"), []);
    let one_left = "a:permit2=1 b:permit2=2 a:release=ok c:permit2=3 b:check=ok c:check=ok";
    assert_eq!(broken(one_left), []);
}

#[test]
fn one_holder_more_than_permits_is_found() {
    let three = "a:permit2=1 b:permit2=2 c:permit2=3 a:check=ok b:check=ok c:check=ok";
    assert_eq!(broken(three), [Kind::TooManyHolders]);
    let moment = "a:permit2=ok b:permit2=ok c:permit2=ok a:check=ok b:check=ok";
    assert_eq!(broken(moment), [Kind::TooManyHolders]);
}

#[test]
fn a_permit_and_an_exclusive_hold_exclude_each_other() {
    assert_eq!(broken("a:permit2=1 b:acquire=2 b:check=ok a:check=ok"), [Kind::TwoHolders]);
    assert_eq!(broken("a:acquire=1 b:permit2=2 b:check=ok a:check=ok"), [Kind::TwoHolders]);
}

#[test]
fn if_limits_differ_the_claim_with_the_higher_limit_may_be_last() {
    assert_eq!(broken("a:permit1=1 b:permit2=2 a:check=ok b:check=ok"), []);
    assert_eq!(broken("b:permit1 a:permit2=ok b:=ok a:check=ok b:check=ok"), []);
    let more = "a:permit2=1 b:permit2=2 c:permit1=3 a:check=ok b:check=ok c:check=ok";
    assert_eq!(broken(more), [Kind::TooManyHolders]);
}
