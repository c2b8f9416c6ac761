//! The verdict on the recorded histories, and on the resources that the locks protected.

use std::collections::HashMap;
use std::path::Path;

use lockattr_history::{Event, Op, Step, check, read};

use crate::outcome::Operations;
use crate::worker::{KEYS, SEMAPHORE};
use lockattr_tests::ResourceFile;

/// What was recorded, and which of it must not happen.
pub(crate) struct Verdict {
    pub(crate) operations: Operations,
    pub(crate) violations: Vec<String>,
}

/// Judges all files that a round has left in its directory.
pub(crate) fn of(directory: &Path) -> Verdict {
    let events = match read(directory.join("history.jsonl")) {
        Ok(events) => events,
        Err(error) => {
            let violations = vec![format!("the history cannot be read: {error}")];
            return Verdict { operations: Operations::default(), violations };
        }
    };
    let mut operations = counted(&events);
    let mut violations = match check(&events) {
        Ok(_) => Vec::new(),
        Err(found) => found.iter().map(ToString::to_string).collect(),
    };
    for key in &KEYS[..SEMAPHORE] {
        let (added, damage) = ResourceFile::at(directory.join(key)).judged();
        operations.added += added;
        violations.extend(damage.iter().map(|damage| format!("the resource of `{key}`: {damage}")));
    }
    Verdict { operations, violations }
}

fn counted(events: &[Event]) -> Operations {
    let mut operations = Operations::default();
    let mut open = HashMap::new();
    for event in events {
        let call = (event.process, event.call);
        match event.step {
            Step::Invoke(op) => drop(open.insert(call, op)),
            Step::Lost => operations.lost += 1,
            step => {
                let Some(op) = open.remove(&call) else { continue };
                *match (op, step) {
                    (Op::Acquire(_), Step::Ok(_)) => &mut operations.acquired,
                    (Op::Acquire(_), Step::Fail) => &mut operations.contended,
                    (Op::Acquire(_), _) => &mut operations.failed,
                    (Op::Reenter, Step::Ok(_)) => &mut operations.reentered,
                    (Op::Renew, Step::Ok(_)) => &mut operations.renewed,
                    (Op::Release, Step::Ok(_)) => &mut operations.released,
                    (Op::Check, Step::Ok(_)) => &mut operations.checked,
                    _ => continue,
                } += 1;
            }
        }
    }
    let asked = open.values().filter(|op| matches!(op, Op::Acquire(_)));
    operations.unknown = asked.count() as u64;
    operations
}

#[cfg(test)]
mod tests {
    use lockattr_history::{Mode, Recorder};

    use super::*;

    fn judged(act: impl FnOnce(&Recorder)) -> Verdict {
        let directory = tempfile::tempdir().unwrap();
        act(&Recorder::to_file(1, directory.path().join("history.jsonl")).unwrap());
        of(directory.path())
    }

    #[test]
    fn events_are_counted() {
        let verdict = judged(|recorder| {
            let asks = |chain| recorder.invoke(chain, "x0", Op::Acquire(Mode::Exclusive));
            let held = asks(1);
            asks(2).fail();
            held.ok(Some(5));
            recorder.invoke(1, "x0", Op::Check).ok(None);
            recorder.invoke(1, "x0", Op::Release).ok(None);
            asks(3).unknown();
            drop(asks(4));
        });
        assert_eq!(verdict.violations, [""; 0]);
        let counted = (1, 1, 1, 1);
        let Operations { acquired, contended, failed, unknown, .. } = verdict.operations;
        assert_eq!((acquired, contended, failed, unknown), counted);
        assert_eq!((verdict.operations.checked, verdict.operations.released), (1, 1));
    }

    #[test]
    fn two_holders_are_a_violation() {
        let verdict = judged(|recorder| {
            for chain in [1, 2] {
                recorder.invoke(chain, "x0", Op::Acquire(Mode::Exclusive)).ok(Some(chain.into()));
            }
            for chain in [1, 2] {
                recorder.invoke(chain, "x0", Op::Check).ok(None);
            }
        });
        assert!(verdict.violations[0].contains("two holders"), "{:?}", verdict.violations);
    }
}
