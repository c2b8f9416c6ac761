//! Tests of the fenced mutex: each new fencing token exceeds the last.

use lockattr_history::Kind;

use crate::notation::broken;

#[test]
fn tokens_grow_with_gaps() {
    assert_eq!(broken("a:acquire=1 a:release=ok b:acquire=5 b:release=ok a:acquire=9"), []);
}

#[test]
fn a_later_acquisition_has_no_smaller_token() {
    let back = "a:acquire=5 a:release=ok b:acquire=4 b:release=ok";
    assert_eq!(broken(back), [Kind::FenceWentBack]);
}

#[test]
fn no_token_is_granted_twice() {
    assert_eq!(broken("a:acquire=5 a:release=ok b:acquire=5"), [Kind::FenceTwice]);
    assert_eq!(broken("a:acquire b:acquire a:=5 b:=5"), [Kind::FenceTwice]);
}

#[test]
fn two_concurrent_acquires_may_have_either_order() {
    assert_eq!(broken("a:acquire b:acquire a:=5 b:=4"), []);
    assert_eq!(broken("a:acquire b:acquire a:=4 b:=5"), []);
}

#[test]
fn of_two_concurrent_acquires_the_first_holder_has_the_smaller_token() {
    let text = "a:acquire b:acquire a:=5 a:check=ok a:release=ok b:=4 b:check=ok";
    assert_eq!(broken(text), [Kind::FenceWentBack]);
    let text = "a:acquire b:acquire a:=4 a:check=ok a:release=ok b:=5 b:check=ok";
    assert_eq!(broken(text), []);
}

#[test]
fn a_lost_hold_counts_in_the_order() {
    let text = "a:acquire=5 a:lost b:acquire=4 b:check=ok";
    assert_eq!(broken(text), [Kind::FenceWentBack]);
}

#[test]
fn locks_without_tokens_need_none() {
    assert_eq!(broken("a:acquire=ok a:release=ok b:acquire=ok b:release=ok"), []);
}

#[test]
fn a_token_in_no_response_is_allowed() {
    assert_eq!(broken("a:acquire=unknown b:acquire=3 b:release=ok a:release=no"), []);
}

#[test]
fn shared_holds_have_growing_tokens_too() {
    assert_eq!(broken("a:share=1 b:share=2 a:check=ok b:check=ok"), []);
    assert_eq!(broken("a:share=2 b:share=1 a:check=ok b:check=ok"), [Kind::FenceWentBack]);
    assert_eq!(broken("a:share b:share a:=2 b:=1 a:check=ok b:check=ok"), []);
}

#[test]
fn an_exclusive_hold_has_a_greater_token_than_those_that_shared_before_it() {
    let text = "a:share b:acquire a:=5 a:check=ok a:release=ok b:=4 b:check=ok";
    assert_eq!(broken(text), [Kind::FenceWentBack]);
    let text = "a:acquire b:share a:=5 a:check=ok a:release=ok b:=4 b:check=ok";
    assert_eq!(broken(text), [Kind::FenceWentBack]);
}

/// Red without: `granted.max(earliest)`. The exclusive hold fits after the first shared one only,
/// which ends after the second one has begun.
#[test]
fn an_exclusive_hold_between_two_tokens_needs_a_gap_between_their_holds() {
    let text = "b:acquire a:share=1 c:share=3 a:check=ok b:=2 b:lost";
    assert_eq!(broken(text), [Kind::FenceWentBack]);
    let text = "b:acquire a:share=1 a:check=ok c:share c:=3 b:=2 b:lost";
    assert_eq!(broken(text), []);
}

/// Red without: `permit_ends`.
#[test]
fn a_permit_is_granted_after_one_of_those_with_smaller_tokens_has_ended() {
    let text = "c:permit2 b:permit2=3 a:permit2=4 b:release=ok c:=5 a:release c:check=ok";
    assert_eq!(broken(text), []);
    let text =
        "a:permit2=3 a:renew c:permit2 b:permit2 a:=ok b:=4 c:=6 a:release b:reenter a:=ok b:=4";
    assert_eq!(broken(text), [Kind::FenceWentBack]);
}
