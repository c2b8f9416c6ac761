//! Tests of calls with unknown outcome, and of lost holds.

use lockattr_history::Kind;

use crate::notation::broken;

#[test]
fn an_acquire_with_unknown_outcome_may_have_succeeded() {
    assert_eq!(broken("a:acquire=unknown a:release=ok b:acquire=2 b:release=ok"), []);
    assert_eq!(broken("a:acquire=unknown b:acquire=2 b:release=ok a:release=ok"), []);
    assert_eq!(broken("a:acquire=unknown b:acquire=2 b:check=ok b:release=ok"), []);
}

#[test]
fn it_succeeded_at_most_once() {
    let twice = "a:acquire=unknown a:release=ok a:release=ok";
    assert_eq!(broken(twice), [Kind::ReleasedUnheld]);
}

#[test]
fn it_did_not_succeed_while_another_held() {
    let beside = "a:acquire=unknown b:acquire=2 a:check=ok b:check=ok";
    assert_eq!(broken(beside), [Kind::TwoHolders]);
}

#[test]
fn once_it_is_proved_it_excludes_others() {
    let beside = "a:acquire=unknown a:check=ok b:acquire=2 a:check=ok";
    assert_eq!(broken(beside), [Kind::TwoHolders]);
}

#[test]
fn a_call_without_a_response_has_an_unknown_outcome() {
    assert_eq!(broken("a:acquire b:acquire=1 b:check=ok b:release=ok"), []);
}

#[test]
fn a_release_with_unknown_outcome_may_have_had_no_effect() {
    assert_eq!(broken("a:acquire=1 a:release=unknown a:check=ok a:release=ok"), []);
    let beside = "a:acquire=1 a:release=unknown b:acquire=2 a:check=ok";
    assert_eq!(broken(beside), [Kind::TwoHolders]);
}

#[test]
fn a_process_that_was_notified_of_the_loss_has_no_hold() {
    assert_eq!(broken("a:acquire=1 a:lost a:check=ok"), [Kind::CheckedUnheld]);
    assert_eq!(broken("a:acquire=1 a:lost a:renew=ok"), [Kind::RenewedUnheld]);
    assert_eq!(broken("a:acquire=1 a:lost a:release=ok"), [Kind::ReleasedUnheld]);
    assert_eq!(broken("a:acquire=1 a:check=no a:check=ok"), [Kind::CheckedUnheld]);
    assert_eq!(broken("a:acquire=1 a:release=no a:check=ok"), [Kind::CheckedUnheld]);
}

#[test]
fn a_call_begun_before_the_loss_may_succeed_after_it() {
    assert_eq!(broken("a:acquire=1 a:check a:lost a:=ok"), []);
}

#[test]
fn a_failed_renewal_proves_nothing_about_the_hold() {
    assert_eq!(broken("a:acquire=1 a:renew=no a:check=ok a:release=ok"), []);
}

#[test]
fn a_new_hold_is_not_lost_with_the_old_one() {
    assert_eq!(broken("a:acquire=1 a:lost a:acquire=2 a:check=ok a:release=ok"), []);
}
