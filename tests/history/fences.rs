//! Checks that fencing tokens increase in the order of the grants.

use std::collections::BTreeSet;

use crate::Kind;
use crate::chain::Finding;
use crate::hold::{At, Hold};

/// A position before which something cannot have happened, and the hold that shows it.
type Latest = Option<(At, usize)>;

/// Narrows the time in which each hold may have been granted: after the holds with smaller tokens
/// and before those with greater ones. The tokens must be in order.
pub(crate) fn narrow(holds: &mut [Hold]) {
    let order = in_order(holds);
    let mut last = 0;
    for (_, index) in &order {
        last = holds[*index].invoked.max(last);
        holds[*index].invoked = last;
    }
    let mut first = At::MAX;
    for (_, index) in order.iter().rev() {
        first = holds[*index].responded.min(first);
        holds[*index].responded = first;
    }
}

/// Returns the fencing tokens and the indexes of their holds, smallest token first.
fn in_order(holds: &[Hold]) -> Vec<(u64, usize)> {
    let fenced = holds.iter().enumerate();
    let fenced = fenced.filter_map(|(index, hold)| Some((hold.fence?, index)));
    let mut order: Vec<(u64, usize)> = fenced.collect();
    order.sort_unstable_by_key(|(fence, index)| (*fence, holds[*index].responded));
    order
}

/// Finds tokens that are not in order. `overlapping` are the holds already found to overlap with
/// another: they have no order.
pub(crate) fn find(holds: &[Hold], overlapping: &BTreeSet<usize>) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Over all holds with smaller tokens: the last grant, and the last end of an exclusive and of
    // another hold.
    let (mut granted, mut exclusive_end, mut other_end): (Latest, Latest, Latest) =
        (None, None, None);
    let mut before = None;
    for (fence, index) in in_order(holds) {
        let hold = &holds[index];
        let evidence = |other: usize| hold.evidence().chain(holds[other].evidence());
        if let Some((_, other)) = before.filter(|(same, _)| *same == fence) {
            findings.push(Finding::new(Kind::FenceTwice, evidence(other)));
        } else if !overlapping.contains(&index) {
            // A hold is not granted before those end that it cannot share the lock with.
            let excluded_until =
                if hold.is_exclusive() { exclusive_end.max(other_end) } else { exclusive_end };
            let (last, other) = granted.max(excluded_until).unwrap_or((0, index));
            if last > hold.responded && !overlapping.contains(&other) {
                findings.push(Finding::new(Kind::FenceWentBack, evidence(other)));
            }
        }
        before = Some((fence, index));
        granted = granted.max(Some((hold.invoked, index)));
        let latest_end = if hold.is_exclusive() { &mut exclusive_end } else { &mut other_end };
        *latest_end = (*latest_end).max(Some((hold.end(), index)));
    }
    findings
}
