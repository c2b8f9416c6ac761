//! The verdict on the recorded histories, and on the resources that the locks protected.

use std::collections::HashMap;
use std::path::Path;

use lockattr_history::{Event, Op, Step, TermEvent, TermStep, check, check_terms, read};

use crate::outcome::Operations;
use crate::worker::{KEYS, LEADER, SEMAPHORE, TERMS};
use lockattr_tests::{ResourceFile, TermFile};

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
    let terms = TermFile::at(directory.join(TERMS)).events();
    count_terms(&mut operations, &terms);
    if let Err(found) = check_terms(&terms) {
        violations.extend(found.iter().map(|found| format!("the terms of `{LEADER}`: {found}")));
    }
    Verdict { operations, violations }
}

fn count_terms(operations: &mut Operations, events: &[TermEvent]) {
    for event in events {
        match event.step {
            TermStep::Began => operations.terms += 1,
            TermStep::Wrote => operations.term_writes += 1,
            TermStep::Refused { .. } => operations.term_refusals += 1,
            TermStep::Ended => {}
        }
    }
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

    /// The verdict on a round in which leaders did this.
    fn judged_terms(steps: &[(u32, u64, TermStep)]) -> Verdict {
        let directory = tempfile::tempdir().unwrap();
        drop(Recorder::to_file(1, directory.path().join("history.jsonl")).unwrap());
        let terms = TermFile::at(directory.path().join(TERMS));
        for &(process, term, step) in steps {
            terms.note(process, term, step);
        }
        of(directory.path())
    }

    #[test]
    fn terms_are_counted() {
        let verdict = judged_terms(&[
            (1, 3, TermStep::Began),
            (1, 3, TermStep::Wrote),
            (2, 5, TermStep::Began),
            (2, 5, TermStep::Wrote),
            (1, 3, TermStep::Refused { held: false }),
            (1, 3, TermStep::Ended),
            (2, 5, TermStep::Wrote),
        ]);
        assert_eq!(verdict.violations, [""; 0]);
        let Operations { terms, term_writes, term_refusals, .. } = verdict.operations;
        assert_eq!((terms, term_writes, term_refusals), (2, 3, 1));
    }

    #[test]
    fn writes_of_two_terms_that_interleave_are_a_violation() {
        let began = [(1, 3, TermStep::Began), (2, 5, TermStep::Began)];
        let wrote = [(2, 5, TermStep::Wrote), (1, 3, TermStep::Wrote)];
        let verdict = judged_terms(&[began, wrote].concat());
        let [violation] = &*verdict.violations else { panic!("{:?}", verdict.violations) };
        assert!(violation.contains("after one of a later term"), "{violation}");
        assert_eq!((verdict.operations.terms, verdict.operations.term_writes), (2, 2));
    }

    #[test]
    fn two_leaders_at_once_are_a_violation() {
        let verdict = judged_terms(&[
            (1, 3, TermStep::Began),
            (2, 5, TermStep::Began),
            (2, 5, TermStep::Wrote),
            (1, 3, TermStep::Refused { held: true }),
        ]);
        let [violation] = &*verdict.violations else { panic!("{:?}", verdict.violations) };
        assert!(violation.contains("a leader that held its lease was refused"), "{violation}");
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
