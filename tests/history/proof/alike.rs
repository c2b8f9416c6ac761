//! Compares both checkers on random histories.

use std::cell::{Cell, RefCell};

use lockattr_history::{Event, Kind, Mode, Op, Step, check, seed};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::random::{Choices, Kinds, change, true_history};
use crate::reference::explains;

const EXCLUSIVE: &[Mode] = &[Mode::Exclusive];
const READ_WRITE: &[Mode] = &[Mode::Exclusive, Mode::Shared];
const PERMITS: &[Mode] = &[Mode::Permits(2)];

/// The other checker tries all orders, so more steps would take too long.
const STEPS: usize = 10;

/// Enough that about a third of the histories become wrong.
const CHANGES: usize = 4;

/// The allowed number of differences, of a thousand histories.
const ALLOWED_DIFFERENCES: usize = 10;

fn random_bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 140)
}

/// Checks changed histories of these kinds with both checkers, and requires enough of each verdict.
fn assert_same_verdicts(kinds: Kinds) {
    let missed = find_missed(kinds);
    let certain = missed.iter().find(|events| !has_unknown_outcome(events));
    assert!(certain.is_none(), "only the reference rejects:\n{}", format_events(certain.unwrap()));
    assert!(missed.len() < ALLOWED_DIFFERENCES, "only the reference rejects {}", missed.len());
}

/// Returns whether an acquire or a re-entry has an unknown outcome. Our checker does not conclude
/// that outcome from the chain's later responses.
fn has_unknown_outcome(events: &[Event]) -> bool {
    let enters = |event: &&Event| matches!(event.step, Step::Invoke(Op::Acquire(_) | Op::Reenter));
    let unknown = |invoked: &Event| {
        let of_same_call =
            |event: &&Event| (event.process, event.call) == (invoked.process, invoked.call);
        events.iter().filter(of_same_call).any(|event| event.step == Step::Unknown)
    };
    events.iter().filter(enters).any(unknown)
}

/// Checks changed histories with both checkers, and returns those that only the other rejects.
fn find_missed(kinds: Kinds) -> Vec<Vec<Event>> {
    let (right, wrong) = (Cell::new(0), Cell::new(0));
    let missed = RefCell::new(Vec::new());
    let config = ProptestConfig {
        rng_seed: RngSeed::Fixed(seed()),
        failure_persistence: None,
        ..ProptestConfig::with_cases(1000)
    };
    proptest!(config, |(bytes in random_bytes())| {
        let mut choices = Choices(bytes.iter());
        let mut events = true_history(kinds, STEPS, &mut choices);
        prop_assert!(accepts(&events), "our checker rejects a correct history:\n{}", format_events(&events));
        prop_assert!(explains(&events), "the reference rejects a correct history:\n{}", format_events(&events));
        for _ in 0..CHANGES {
            change(kinds, &mut events, &mut choices);
        }
        let (accepted, reference) = (accepts(&events), explains(&events));
        let count = if reference { &right } else { &wrong };
        count.set(count.get() + 1);
        prop_assert!(accepted || !reference, "only our checker rejects:\n{}", format_events(&events));
        if accepted != reference {
            missed.borrow_mut().push(events);
        }
    });
    let (right, wrong) = (right.get(), wrong.get());
    assert!(right > 100 && wrong > 100, "after the change {right} were correct, {wrong} wrong");
    missed.into_inner()
}

fn accepts(events: &[Event]) -> bool {
    match check(events) {
        Ok(_) => true,
        Err(found) => {
            assert!(found.iter().all(|violation| violation.kind != Kind::Misrecorded));
            false
        }
    }
}

fn format_events(events: &[Event]) -> String {
    let line = |event: &Event| format!("{} {} {:?}\n", event.process, event.call, event.step);
    events.iter().map(line).collect()
}

#[test]
fn of_exclusive_locks() {
    assert_same_verdicts(Kinds { modes: EXCLUSIVE, fenced: false });
}

#[test]
fn of_fenced_locks() {
    assert_same_verdicts(Kinds { modes: EXCLUSIVE, fenced: true });
}

#[test]
fn of_read_write_locks() {
    assert_same_verdicts(Kinds { modes: READ_WRITE, fenced: false });
}

#[test]
fn of_fenced_read_write_locks() {
    assert_same_verdicts(Kinds { modes: READ_WRITE, fenced: true });
}

#[test]
fn of_semaphores() {
    assert_same_verdicts(Kinds { modes: PERMITS, fenced: false });
}

#[test]
fn of_fenced_semaphores() {
    assert_same_verdicts(Kinds { modes: PERMITS, fenced: true });
}
