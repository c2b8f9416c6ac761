//! Tests of the owner-aware mutex: one holder at a time, and only the holder renews and releases.

use lockattr_history::{Event, Kind, Mode, Op, Step, check};

use crate::notation::{broken, history};

#[test]
fn one_after_the_other_is_right() {
    assert_eq!(broken("a:acquire=1 a:check=ok a:release=ok b:acquire=2 b:release=ok"), []);
    let overlapping =
        "b:acquire a:acquire=1 a:check=ok a:release b:=2 a:=ok b:check=ok b:release=ok";
    assert_eq!(broken(overlapping), []);
}

#[test]
fn correct_calls_are_counted() {
    let text = "a:acquire=1 a:check=ok a:renew=ok a:reenter=1 a:leave=ok b:acquire=no \
                a:release=ok b:acquire=unknown c:acquire";
    let judged = check(&history(text)).expect("right");
    assert_eq!((judged.keys, judged.acquired, judged.checked, judged.renewed), (1, 1, 1, 1));
    assert_eq!((judged.reentered, judged.released, judged.failed, judged.unknown), (1, 1, 1, 2));
}

#[test]
fn two_holders_at_once_are_found() {
    assert_eq!(broken("a:acquire=1 b:acquire=2 b:check=ok a:check=ok"), [Kind::TwoHolders]);
}

#[test]
fn two_holders_are_found_by_their_releases_alone() {
    assert_eq!(broken("a:acquire=1 b:acquire=2 b:release=ok a:release=ok"), [Kind::TwoHolders]);
}

#[test]
fn an_acquire_while_another_holds_is_found_without_a_proof() {
    assert_eq!(broken("a:acquire=ok b:acquire=ok a:check=ok"), [Kind::TwoHolders]);
}

#[test]
fn a_late_response_proves_nothing() {
    // The process was paused between its grant and the record of it, and its lease has expired.
    assert_eq!(broken("b:acquire a:acquire=2 b:=1 a:check=ok a:release=ok b:release=no"), []);
}

#[test]
fn a_holder_that_makes_no_more_calls_excludes_no_other() {
    assert_eq!(broken("a:acquire=1 a:check=ok b:acquire=2 b:check=ok a:check=no"), []);
    assert_eq!(broken("a:acquire=1 a:lost b:acquire=2 b:check=ok"), []);
    assert_eq!(broken("a:acquire=1 a:release=unknown b:acquire=2 b:check=ok b:release=ok"), []);
}

#[test]
fn a_release_beside_a_holder_differs_from_two_holders() {
    let theirs = "a:acquire=ok b:acquire=ok a:release=ok b:check=ok b:release=ok";
    assert_eq!(broken(theirs), [Kind::ReleasedBesideHolder]);
}

#[test]
fn a_renewal_beside_a_holder_differs_from_two_holders() {
    let theirs = "a:acquire=ok b:acquire=ok a:renew=ok b:check=ok b:release=ok";
    assert_eq!(broken(theirs), [Kind::RenewedBesideHolder]);
}

#[test]
fn a_process_without_a_hold_cannot_release_renew_or_check() {
    assert_eq!(broken("a:release=ok"), [Kind::ReleasedUnheld]);
    assert_eq!(broken("a:renew=ok"), [Kind::RenewedUnheld]);
    assert_eq!(broken("a:check=ok"), [Kind::CheckedUnheld]);
    assert_eq!(broken("a:acquire=no a:check=ok"), [Kind::CheckedUnheld]);
    assert_eq!(broken("a:release=no a:renew=no a:check=no"), []);
}

#[test]
fn a_process_that_has_released_has_no_hold() {
    assert_eq!(broken("a:acquire=1 a:release=ok a:release=ok"), [Kind::ReleasedUnheld]);
    assert_eq!(broken("a:acquire=1 a:release=ok a:check=ok"), [Kind::CheckedUnheld]);
}

#[test]
fn two_locks_are_independent() {
    let mut both = history("a:acquire=1 b:acquire=2 b:check=ok a:check=ok");
    assert!(check(&both).is_err());
    for event in both.iter_mut().filter(|event| event.process == u32::from(b'b')) {
        event.key = "other".to_owned();
    }
    assert!(check(&both).is_ok());
}

#[test]
fn a_violation_reads_as_a_sentence() {
    let found = check(&history("a:acquire=1 b:acquire=2 b:check=ok a:check=ok")).expect_err("two");
    let words = found[0].to_string();
    assert!(words.starts_with("two holders at once: `k`\n"), "{words}");
    assert!(words.contains("process 97, chain 0: calls Acquire(Exclusive) (call 0)"), "{words}");
    assert!(words.contains("at 0.000000001 s process 98"), "{words}");
    assert!(words.contains("call 1 succeeded, with fencing token 2"), "{words}");
}

#[test]
fn an_incorrectly_recorded_history_is_rejected() {
    let mut events = history("a:acquire=1 a:release=ok");
    events.remove(0);
    let found = check(&events).expect_err("a response without an invocation");
    assert_eq!(found[0].kind, Kind::Misrecorded);
    let mut events = history("a:acquire a:check=ok");
    events[1].call = 0;
    let found = check(&events).expect_err("two calls with one number");
    assert_eq!(found[0].kind, Kind::Misrecorded);
}

/// Checks 200,000 consecutive holds by 8 processes, of five events each and with increasing tokens.
/// The error is in the middle.
#[test]
fn one_wrong_response_is_found_among_a_million_events() {
    let mut events = Vec::new();
    for hold in 0..200_000_u64 {
        let steps = [
            Step::Invoke(Op::Acquire(Mode::Exclusive)),
            Step::Ok(Some(hold + 1)),
            Step::Invoke(Op::Release),
            Step::Ok(None),
            Step::Lost,
        ];
        for (at, step) in (hold * 5..).zip(steps) {
            let (process, call, key) = ((hold % 8) as u32, hold * 2 + at % 5 / 2, "k".to_owned());
            events.push(Event { at, process, chain: 0, call, key, step });
        }
    }
    assert_eq!(check(&events).expect("right").acquired, 200_000);
    events[500_001].step = Step::Ok(Some(100_000));
    let found: Vec<Kind> = check(&events).unwrap_err().iter().map(|one| one.kind).collect();
    assert_eq!(found, [Kind::FenceTwice]);
}
