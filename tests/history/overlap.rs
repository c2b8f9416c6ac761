//! Finds holds that overlap but may not: one pass over the holds of a lock, by position.

use std::collections::{BTreeMap, BTreeSet};

use crate::chain::Finding;
use crate::hold::{At, Certain, Hold};
use crate::{Kind, Mode};

/// A change of the certain holders, or a deadline for a moment.
enum Edge {
    Begins(usize),
    Ends(usize),
    /// The end of the time in which a hold that is certain for only one moment must have had it.
    Due(usize, At),
}

/// The certain holders, by the ends of their spans.
#[derive(Default)]
struct Holders {
    exclusive: BTreeMap<At, usize>,
    shared: BTreeMap<At, usize>,
    permits: BTreeMap<At, usize>,
}

/// Returns the findings, and the later hold of each.
pub(crate) fn find(holds: &[Hold]) -> (Vec<Finding>, BTreeSet<usize>) {
    let mut edges = Vec::with_capacity(holds.len() * 2);
    // The modes of the holds with only a moment, and the last position at which each was possible.
    let mut possible: Vec<(Mode, Option<At>)> = Vec::new();
    for (index, hold) in holds.iter().enumerate() {
        match hold.certain() {
            Certain::Span(from, until) => {
                edges.push((from, Edge::Begins(index)));
                edges.push((until, Edge::Ends(index)));
            }
            Certain::Moment(from, until) => {
                edges.push((until, Edge::Due(index, from)));
                if possible.iter().all(|(mode, _)| *mode != hold.mode) {
                    possible.push((hold.mode, None));
                }
            }
        }
    }
    edges.sort_unstable_by_key(|(at, _)| *at);
    let mut holders = Holders::default();
    let (mut findings, mut later_holds) = (Vec::new(), BTreeSet::new());
    for (at, edge) in edges {
        let found = match edge {
            Edge::Ends(index) => {
                holders.of(holds[index].mode).remove(&at);
                continue;
            }
            Edge::Begins(index) => {
                for (mode, until) in &mut possible {
                    if holders.excluding(*mode).is_none() {
                        *until = Some(at);
                    }
                }
                let found = holders.excluding_new(index, holds);
                let end = holds[index].end();
                holders.of(holds[index].mode).insert(end, index);
                found.map(|(kind, other)| (kind, other, index))
            }
            Edge::Due(index, from) => {
                let until = possible.iter().find(|(mode, _)| *mode == holds[index].mode);
                // It was possible until a hold began that excludes it.
                let was_possible =
                    until.and_then(|(_, until)| *until).is_some_and(|until| until > from);
                let found = holders.excluding(holds[index].mode).filter(|_| !was_possible);
                found.map(|(kind, other)| (kind, other, index))
            }
        };
        if let Some((kind, other, index)) = found {
            later_holds.insert(index);
            let evidence = holds[other].evidence().chain(holds[index].evidence());
            findings.push(Finding::new(kind, evidence));
        }
    }
    (findings, later_holds)
}

impl Holders {
    fn of(&mut self, mode: Mode) -> &mut BTreeMap<At, usize> {
        match mode {
            Mode::Exclusive => &mut self.exclusive,
            Mode::Shared => &mut self.shared,
            Mode::Permits(_) => &mut self.permits,
        }
    }

    /// Returns a hold that certainly excludes a new one of this mode.
    fn excluding(&self, mode: Mode) -> Option<(Kind, usize)> {
        let last = |of: &BTreeMap<At, usize>| of.last_key_value().map(|(_, index)| *index);
        let exclusive = last(&self.exclusive).map(|index| (Kind::TwoHolders, index));
        exclusive.or_else(|| match mode {
            Mode::Exclusive => {
                last(&self.shared).or(last(&self.permits)).map(|other| (Kind::TwoHolders, other))
            }
            Mode::Shared => None,
            Mode::Permits(count) => {
                let is_full = self.permits.len() >= usize::try_from(count).unwrap_or(usize::MAX);
                last(&self.permits).filter(|_| is_full).map(|other| (Kind::TooManyHolders, other))
            }
        })
    }

    /// Returns a hold that excludes this one, which has just begun.
    fn excluding_new(&self, index: usize, holds: &[Hold]) -> Option<(Kind, usize)> {
        let new = &holds[index];
        // If the limits differ, the hold with the highest limit may have been granted last.
        let mode = match new.mode {
            Mode::Permits(count) => {
                let limits = self.permits.values().map(|other| match holds[*other].mode {
                    Mode::Permits(count) => count,
                    Mode::Exclusive | Mode::Shared => 0,
                });
                Mode::Permits(limits.fold(count, u32::max))
            }
            mode => mode,
        };
        let (kind, other) = self.excluding(mode)?;
        if kind == Kind::TwoHolders {
            return Some((kind_of_overlap(&holds[other], new), other));
        }
        Some((kind, other))
    }
}

/// Returns the rule that two overlapping holds broke, by the proof that the earlier one still held.
fn kind_of_overlap(earlier: &Hold, later: &Hold) -> Kind {
    let proofs = earlier.proofs;
    let began = later.responded;
    let after = |proof: Option<(At, At)>| proof.filter(|(invoked, _)| *invoked > began);
    // The later hold spans that response, so the store should not have given it.
    let during_later = |proof| after(proof).is_some_and(|(_, responded)| responded < later.end());
    if after(proofs.reliance).is_some() {
        Kind::TwoHolders
    } else if during_later(proofs.renewal) {
        Kind::RenewedBesideHolder
    } else if during_later(proofs.release) {
        Kind::ReleasedBesideHolder
    } else {
        Kind::TwoHolders
    }
}
