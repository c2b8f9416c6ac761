//! Compares both checkers on random histories.

use std::cell::{Cell, RefCell};

use lockattr_history::{Event, Kind, Mode, Op, Step, check};
use proptest::collection::vec;
use proptest::prelude::*;

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
const FEW: usize = 10;

fn drawn() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 140)
}

/// Checks changed histories of these kinds with both checkers, and requires enough of each verdict.
fn alike(kinds: Kinds) {
    let missed = differ(kinds);
    let certain = missed.iter().find(|events| !doubtful(events));
    assert!(certain.is_none(), "only the other refuses:\n{}", shown(certain.unwrap()));
    assert!(missed.len() < FEW, "{} are refused by the other only", missed.len());
}

/// Returns whether an acquire or a re-entry has an unknown outcome. Our checker does not conclude
/// that outcome from the chain's later responses.
fn doubtful(events: &[Event]) -> bool {
    let enters = |event: &&Event| matches!(event.step, Step::Invoke(Op::Acquire(_) | Op::Reenter));
    let unknown = |asked: &Event| {
        let of_it = |event: &&Event| (event.process, event.call) == (asked.process, asked.call);
        events.iter().filter(of_it).any(|event| event.step == Step::Unknown)
    };
    events.iter().filter(enters).any(unknown)
}

/// Checks changed histories with both checkers, and returns those that only the other rejects.
fn differ(kinds: Kinds) -> Vec<Vec<Event>> {
    let (right, wrong) = (Cell::new(0), Cell::new(0));
    let missed = RefCell::new(Vec::new());
    proptest!(ProptestConfig::with_cases(1000), |(drawn in drawn())| {
        let mut choices = Choices(drawn.iter());
        let mut events = true_history(kinds, STEPS, &mut choices);
        prop_assert!(ours(&events), "a true history is refused:\n{}", shown(&events));
        prop_assert!(explains(&events), "the other refuses a true history:\n{}", shown(&events));
        for _ in 0..CHANGES {
            change(kinds, &mut events, &mut choices);
        }
        let (verdict, others) = (ours(&events), explains(&events));
        let count = if others { &right } else { &wrong };
        count.set(count.get() + 1);
        prop_assert!(verdict || !others, "only ours refuses:\n{}", shown(&events));
        if verdict != others {
            missed.borrow_mut().push(events);
        }
    });
    let (right, wrong) = (right.get(), wrong.get());
    assert!(right > 100 && wrong > 100, "{right} were right after the change, {wrong} wrong");
    missed.into_inner()
}

fn ours(events: &[Event]) -> bool {
    match check(events) {
        Ok(_) => true,
        Err(found) => {
            assert!(found.iter().all(|violation| violation.kind != Kind::Misrecorded));
            false
        }
    }
}

fn shown(events: &[Event]) -> String {
    let line = |event: &Event| format!("{} {} {:?}\n", event.process, event.call, event.step);
    events.iter().map(line).collect()
}

#[test]
fn of_exclusive_locks() {
    alike(Kinds { modes: EXCLUSIVE, fenced: false });
}

#[test]
fn of_fenced_locks() {
    alike(Kinds { modes: EXCLUSIVE, fenced: true });
}

#[test]
fn of_read_write_locks() {
    alike(Kinds { modes: READ_WRITE, fenced: false });
}

#[test]
fn of_fenced_read_write_locks() {
    alike(Kinds { modes: READ_WRITE, fenced: true });
}

#[test]
fn of_semaphores() {
    alike(Kinds { modes: PERMITS, fenced: false });
}

/// The tokens of concurrent acquires reveal which was first. Our checker does not conclude from
/// that which acquire found no permit, if it has no proof of its hold.
#[test]
fn of_fenced_semaphores_but_for_a_few() {
    let missed = differ(Kinds { modes: PERMITS, fenced: true });
    assert!(
        missed.len() < 10,
        "{} are refused by the other only:\n{}",
        missed.len(),
        shown(&missed[0])
    );
}
