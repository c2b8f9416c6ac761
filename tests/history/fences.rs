//! Checks that fencing tokens increase in the order of the grants.

use std::collections::BTreeSet;

use crate::chain::Finding;
use crate::hold::{At, Hold};
use crate::{Kind, Mode};

/// The first position at which something may have happened, and the hold that shows it.
type Earliest = Option<(At, usize)>;

/// The holds with smaller tokens than the next one.
#[derive(Default)]
struct Smaller {
    /// The last grant.
    granted: Earliest,
    /// The last ends of an exclusive and of a shared hold.
    exclusive_end: Earliest,
    shared_end: Earliest,
    /// The ends of all that have a permit, and the greatest number of permits.
    permit_ends: BTreeSet<(At, usize)>,
    permits: u32,
}

impl Smaller {
    /// Returns the first position at which the next hold may have been granted: after the grants of
    /// these, and after those have ended that it cannot share the lock with.
    fn granted_before(&self, next: &Hold) -> Earliest {
        let excluded = match next.mode {
            Mode::Exclusive => self.shared_end.max(self.permit_ends.last().copied()),
            Mode::Shared => None,
            Mode::Permits(permits) => {
                // If the limits differ, the highest is meant.
                let permits = usize::try_from(permits.max(self.permits)).unwrap_or(usize::MAX);
                let others = permits.saturating_sub(1);
                self.permit_ends.iter().rev().nth(others).copied()
            }
        };
        self.granted.max(self.exclusive_end).max(excluded)
    }

    fn add(&mut self, index: usize, granted: At, hold: &Hold) {
        self.granted = self.granted.max(Some((granted, index)));
        let end = (hold.end(), index);
        match hold.mode {
            Mode::Exclusive => self.exclusive_end = self.exclusive_end.max(Some(end)),
            Mode::Shared => self.shared_end = self.shared_end.max(Some(end)),
            Mode::Permits(permits) => {
                self.permit_ends.insert(end);
                self.permits = self.permits.max(permits);
            }
        }
    }
}

/// Narrows the time in which each hold may have been granted: after the holds with smaller tokens
/// and before those with greater ones. The tokens must be in order.
pub(crate) fn narrow(holds: &mut [Hold]) {
    let order = in_order(holds);
    let mut smaller = Smaller::default();
    for (_, index) in &order {
        let hold = &mut holds[*index];
        let earliest = smaller.granted_before(hold).map_or(0, |(at, _)| at);
        hold.invoked = hold.invoked.max(earliest);
        smaller.add(*index, hold.invoked, hold);
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
    let mut smaller = Smaller::default();
    let mut before = None;
    for (fence, index) in in_order(holds) {
        let hold = &holds[index];
        let evidence = |other: usize| hold.evidence().chain(holds[other].evidence());
        let mut granted = hold.invoked;
        if let Some((_, other)) = before.filter(|(same, _)| *same == fence) {
            findings.push(Finding::new(Kind::FenceTwice, evidence(other)));
        } else if !overlapping.contains(&index)
            && let Some((earliest, other)) = smaller.granted_before(hold)
            && !overlapping.contains(&other)
        {
            if earliest > hold.responded {
                findings.push(Finding::new(Kind::FenceWentBack, evidence(other)));
            } else {
                granted = granted.max(earliest);
            }
        }
        before = Some((fence, index));
        smaller.add(index, granted, hold);
    }
    findings
}
