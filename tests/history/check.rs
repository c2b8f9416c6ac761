//! Checks whether a correct lock could have given the responses of a history.

use std::collections::HashMap;

use crate::chain::{Chain, Finding, Pending};
use crate::hold::{At, Hold};
use crate::{Event, Kind, Op, Step, Violation, fences, overlap};

/// The counts of a history without violations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// All events.
    pub events: u64,
    /// Locks.
    pub keys: u64,
    /// Acquisitions, hand-offs included.
    pub acquired: u64,
    /// Re-entries.
    pub reentered: u64,
    /// Successful checks.
    pub checked: u64,
    /// Renewals.
    pub renewed: u64,
    /// Releases.
    pub released: u64,
    /// Holds whose holder was notified of their loss.
    pub lost: u64,
    /// Calls that had no effect.
    pub failed: u64,
    /// Calls whose outcome is unknown.
    pub unknown: u64,
}

#[derive(Default)]
struct Lock {
    chains: HashMap<(u32, u32), Chain>,
    holds: Vec<Hold>,
}

/// Checks each lock separately: an exclusive holder has the lock alone, a shared holder only with
/// other shared holders, and there are never more holders than permits. Only a holder renews,
/// releases and re-enters. A re-entry has its hold's fencing token, and each acquisition a greater
/// token than all before it.
///
/// A hold counts only for the time that responses prove: a process may be paused before it records
/// a response, so nothing follows for that time, nor from calls with unknown outcome. Events with
/// the same time happened in the order of `events`.
///
/// # Errors
///
/// All violations. Without any, the history is linearizable, as another checker confirms that tries
/// all orders. The exceptions are a few histories in a thousand, where a chain's later calls reveal
/// the outcome of an unknown call.
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
            chain.end(at);
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
        findings.extend(find_violations(&mut lock.holds));
    }
    if findings.is_empty() {
        return Ok(judged);
    }
    findings.sort_by_key(|finding| finding.evidence.last().copied());
    Err(findings.into_iter().map(|finding| violation_of(finding, &order)).collect())
}

/// Finds the violations among all holds of one lock.
fn find_violations(holds: &mut [Hold]) -> Vec<Finding> {
    let (mut found, overlapping) = overlap::find(holds);
    found.extend(fences::find(holds, &overlapping));
    if found.is_empty() {
        // Only now: wrong tokens would cause other, misleading findings.
        fences::narrow(holds);
        found = overlap::find(holds).0;
    }
    found
}

fn violation_of(Finding { kind, evidence }: Finding, order: &[&Event]) -> Violation {
    let events: Vec<Event> = evidence.into_iter().map(|at: At| order[at].clone()).collect();
    let key = events.first().map(|event| event.key.clone()).unwrap_or_default();
    Violation { kind, key, events }
}

impl Judged {
    fn count(&mut self, op: Op) {
        let counter = match op {
            Op::Acquire(_) => &mut self.acquired,
            Op::Reenter => &mut self.reentered,
            Op::Check => &mut self.checked,
            Op::Renew => &mut self.renewed,
            Op::Release => &mut self.released,
            Op::Leave => return,
        };
        *counter += 1;
    }
}
