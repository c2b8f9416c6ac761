//! The checker: whether a lock could have said what a history says that it said.

use std::collections::HashMap;

use crate::chain::{Chain, Finding, Pending};
use crate::hold::{At, Hold};
use crate::{Event, Kind, Op, Step, Violation, fences, overlap};

/// What was found to be right: how much of it there was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Events in all.
    pub events: u64,
    /// Locks.
    pub keys: u64,
    /// Holds, hand-offs too.
    pub acquired: u64,
    /// Holds that were entered again.
    pub reentered: u64,
    /// Times a holder was told that it holds.
    pub checked: u64,
    /// Leases that were made longer.
    pub renewed: u64,
    /// Locks that were given back.
    pub released: u64,
    /// Holds of which the holder was told that they are no more.
    pub lost: u64,
    /// Calls that were not done.
    pub failed: u64,
    /// Calls whose outcome is unknown.
    pub unknown: u64,
}

#[derive(Default)]
struct Lock {
    chains: HashMap<(u32, u32), Chain>,
    holds: Vec<Hold>,
}

/// Checks each lock by itself, against what it means to hold: no process beside an exclusive holder, no process
/// but who shares beside a shared one, no more than there are permits; only who holds renews,
/// releases and enters again; a re-entry has the fencing token of its hold, and each acquisition a
/// greater one than all before it.
///
/// A hold is certain only while its holder was told so: nothing is concluded from an answer that
/// somebody got after having stood still, nor from calls whose outcome is unknown. Events with the same
/// time have happened in the order in which they stand.
///
/// # Errors
///
/// All that cannot have been. Where there is none, the history is linearizable, as another checker
/// says that tries all orders; but for a few in a thousand, where a chain's later calls show what
/// became of one of which no process knew, or where the tokens of a semaphore say who was first.
pub fn check(events: &[Event]) -> Result<Judged, Vec<Violation>> {
    let mut order: Vec<&Event> = events.iter().collect();
    order.sort_by_key(|event| event.at);
    let mut judged = Judged { events: events.len() as u64, ..Judged::default() };
    let mut locks: HashMap<&str, Lock> = HashMap::new();
    let mut pending: HashMap<(u32, u64), Pending> = HashMap::new();
    let mut findings = Vec::new();
    for (at, event) in order.iter().enumerate() {
        let lock = locks.entry(&event.key).or_default();
        let chain = lock.chains.entry((event.process, event.chain)).or_default();
        let call = (event.process, event.call);
        if let Step::Invoke(op) = event.step {
            judged.unknown += 1;
            if pending.insert(call, chain.invoke(op, at)).is_some() {
                findings.push(Finding::new(Kind::Misrecorded, [at]));
            }
            continue;
        }
        if event.step == Step::Lost {
            judged.lost += 1;
            chain.ended(at);
            continue;
        }
        let Some(call) = pending.remove(&call) else {
            findings.push(Finding::new(Kind::Misrecorded, [at]));
            continue;
        };
        match event.step {
            Step::Ok(fence) => {
                judged.count(call.op);
                findings.extend(chain.ok(&call, fence, at, &mut lock.holds));
            }
            Step::Fail => {
                judged.failed += 1;
                chain.fail(&call, at);
            }
            Step::Unknown | Step::Lost | Step::Invoke(_) => continue,
        }
        judged.unknown -= 1;
    }
    judged.keys = locks.len() as u64;
    for mut lock in locks.into_values() {
        findings.extend(together(&mut lock.holds));
    }
    if findings.is_empty() {
        return Ok(judged);
    }
    findings.sort_by_key(|finding| finding.shown_by.last().copied());
    Err(findings.into_iter().map(|finding| told(finding, &order)).collect())
}

/// What the holds of one lock show when they are seen together.
fn together(holds: &mut [Hold]) -> Vec<Finding> {
    let (mut found, crowded) = overlap::find(holds);
    found.extend(fences::find(holds, &crowded));
    if found.is_empty() {
        // Only now: tokens that are wrong would make other things look wrong.
        fences::narrow(holds);
        found = overlap::find(holds).0;
    }
    found
}

fn told(Finding { kind, shown_by }: Finding, order: &[&Event]) -> Violation {
    let events: Vec<Event> = shown_by.into_iter().map(|at: At| order[at].clone()).collect();
    let key = events.first().map(|event| event.key.clone()).unwrap_or_default();
    Violation { kind, key, events }
}

impl Judged {
    fn count(&mut self, op: Op) {
        let done = match op {
            Op::Acquire(_) => &mut self.acquired,
            Op::Reenter => &mut self.reentered,
            Op::Check => &mut self.checked,
            Op::Renew => &mut self.renewed,
            Op::Release => &mut self.released,
            Op::Leave => return,
        };
        *done += 1;
    }
}
