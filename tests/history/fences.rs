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
    for (_, place) in &order {
        last = holds[*place].asked.max(last);
        holds[*place].asked = last;
    }
    let mut first = At::MAX;
    for (_, place) in order.iter().rev() {
        first = holds[*place].told.min(first);
        holds[*place].told = first;
    }
}

/// Returns the fencing tokens and the indexes of their holds, smallest token first.
fn in_order(holds: &[Hold]) -> Vec<(u64, usize)> {
    let fenced = holds.iter().enumerate();
    let fenced = fenced.filter_map(|(place, hold)| Some((hold.fence?, place)));
    let mut order: Vec<(u64, usize)> = fenced.collect();
    order.sort_unstable_by_key(|(fence, place)| (*fence, holds[*place].told));
    order
}

/// Finds tokens that are not in order. `crowded` are the holds already found to overlap with
/// another: they have no order.
pub(crate) fn find(holds: &[Hold], crowded: &BTreeSet<usize>) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Over all holds with smaller tokens: the last grant, and the last end of an exclusive and of
    // another hold.
    let (mut granted, mut alone, mut among): (Latest, Latest, Latest) = (None, None, None);
    let mut before = None;
    for (fence, place) in in_order(holds) {
        let hold = &holds[place];
        let shown = |other: usize| hold.shown_by().chain(holds[other].shown_by());
        if let Some((_, other)) = before.filter(|(same, _)| *same == fence) {
            findings.push(Finding::new(Kind::FenceTwice, shown(other)));
        } else if !crowded.contains(&place) {
            // A hold is not granted before those end that it cannot share the lock with.
            let gone = if hold.is_exclusive() { alone.max(among) } else { alone };
            let (last, other) = granted.max(gone).unwrap_or((0, place));
            if last > hold.told && !crowded.contains(&other) {
                findings.push(Finding::new(Kind::FenceWentBack, shown(other)));
            }
        }
        before = Some((fence, place));
        granted = granted.max(Some((hold.asked, place)));
        let sort = if hold.is_exclusive() { &mut alone } else { &mut among };
        *sort = (*sort).max(Some((hold.end(), place)));
    }
    findings
}
