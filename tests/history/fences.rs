//! Whether fencing tokens tell in which order their locks were granted.

use std::collections::BTreeSet;

use crate::Kind;
use crate::chain::Finding;
use crate::hold::{At, Hold};

/// A hold, and the last position at which it must have been granted already.
type Latest = Option<(At, usize)>;

/// What the fencing tokens say of when the holds were granted: each after those with smaller tokens,
/// and before those with greater ones. For tokens that are in order.
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

/// Fencing tokens and whose they are, from the smallest.
fn in_order(holds: &[Hold]) -> Vec<(u64, usize)> {
    let fenced = holds.iter().enumerate();
    let fenced = fenced.filter_map(|(place, hold)| Some((hold.fence?, place)));
    let mut order: Vec<(u64, usize)> = fenced.collect();
    order.sort_unstable_by_key(|(fence, place)| (*fence, holds[*place].told));
    order
}

/// `crowded` are the holds that were found beside another already: who came in there has no order.
pub(crate) fn find(holds: &[Hold], crowded: &BTreeSet<usize>) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Of all that have smaller tokens: when the last was granted, when the last of each sort ended.
    let (mut granted, mut alone, mut among): (Latest, Latest, Latest) = (None, None, None);
    let mut before = None;
    for (fence, place) in in_order(holds) {
        let hold = &holds[place];
        let shown = |other: usize| hold.shown_by().chain(holds[other].shown_by());
        if let Some((_, other)) = before.filter(|(same, _)| *same == fence) {
            findings.push(Finding::new(Kind::FenceTwice, shown(other)));
        } else if !crowded.contains(&place) {
            // No process comes in before one is gone with whom the lock is not shared.
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
