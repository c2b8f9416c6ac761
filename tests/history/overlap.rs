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
struct Inside {
    exclusive: BTreeMap<At, usize>,
    shared: BTreeMap<At, usize>,
    permits: BTreeMap<At, usize>,
}

/// Returns the findings, and the later hold of each.
pub(crate) fn find(holds: &[Hold]) -> (Vec<Finding>, BTreeSet<usize>) {
    let mut edges = Vec::with_capacity(holds.len() * 2);
    // The modes of the holds with only a moment, and the last position at which each was possible.
    let mut possible: Vec<(Mode, Option<At>)> = Vec::new();
    for (place, hold) in holds.iter().enumerate() {
        match hold.certain() {
            Certain::Span(from, until) => {
                edges.push((from, Edge::Begins(place)));
                edges.push((until, Edge::Ends(place)));
            }
            Certain::Moment(from, until) => {
                edges.push((until, Edge::Due(place, from)));
                if possible.iter().all(|(mode, _)| *mode != hold.mode) {
                    possible.push((hold.mode, None));
                }
            }
        }
    }
    edges.sort_unstable_by_key(|(at, _)| *at);
    let mut inside = Inside::default();
    let (mut findings, mut late) = (Vec::new(), BTreeSet::new());
    for (at, edge) in edges {
        let found = match edge {
            Edge::Ends(place) => {
                inside.of(holds[place].mode).remove(&at);
                continue;
            }
            Edge::Begins(place) => {
                for (mode, until) in &mut possible {
                    if inside.keeps_out(*mode).is_none() {
                        *until = Some(at);
                    }
                }
                let found = inside.crowd_with(place, holds);
                let end = holds[place].end();
                inside.of(holds[place].mode).insert(end, place);
                found.map(|(kind, other)| (kind, other, place))
            }
            Edge::Due(place, from) => {
                let until = possible.iter().find(|(mode, _)| *mode == holds[place].mode);
                // It was possible until a hold began that excludes it.
                let was = until.and_then(|(_, until)| *until).is_some_and(|until| until > from);
                let found = inside.keeps_out(holds[place].mode).filter(|_| !was);
                found.map(|(kind, other)| (kind, other, place))
            }
        };
        if let Some((kind, other, place)) = found {
            late.insert(place);
            let shown_by = holds[other].shown_by().chain(holds[place].shown_by());
            findings.push(Finding::new(kind, shown_by));
        }
    }
    (findings, late)
}

impl Inside {
    fn of(&mut self, mode: Mode) -> &mut BTreeMap<At, usize> {
        match mode {
            Mode::Exclusive => &mut self.exclusive,
            Mode::Shared => &mut self.shared,
            Mode::Permits(_) => &mut self.permits,
        }
    }

    /// Returns a hold that certainly excludes a new one of this mode.
    fn keeps_out(&self, mode: Mode) -> Option<(Kind, usize)> {
        let last = |of: &BTreeMap<At, usize>| of.last_key_value().map(|(_, place)| *place);
        let alone = last(&self.exclusive).map(|place| (Kind::TwoHolders, place));
        alone.or_else(|| match mode {
            Mode::Exclusive => {
                last(&self.shared).or(last(&self.permits)).map(|other| (Kind::TwoHolders, other))
            }
            Mode::Shared => None,
            Mode::Permits(count) => {
                let taken = self.permits.len() >= usize::try_from(count).unwrap_or(usize::MAX);
                last(&self.permits).filter(|_| taken).map(|other| (Kind::TooManyHolders, other))
            }
        })
    }

    /// Returns a hold that excludes this one, which has just begun.
    fn crowd_with(&self, place: usize, holds: &[Hold]) -> Option<(Kind, usize)> {
        let new = &holds[place];
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
        let (kind, other) = self.keeps_out(mode)?;
        if kind == Kind::TwoHolders {
            return Some((beside(&holds[other], new), other));
        }
        Some((kind, other))
    }
}

/// Returns the rule that two overlapping holds broke, by the proof that the earlier one still held.
fn beside(earlier: &Hold, later: &Hold) -> Kind {
    let proofs = earlier.proofs;
    let began = later.told;
    let after = |proof: Option<(At, At)>| proof.filter(|(asked, _)| *asked > began);
    // The later hold spans that response, so the store should not have given it.
    let within = |proof| after(proof).is_some_and(|(_, told)| told < later.end());
    if after(proofs.belief).is_some() {
        Kind::TwoHolders
    } else if within(proofs.renewal) {
        Kind::RenewedBesideHolder
    } else if within(proofs.release) {
        Kind::ReleasedBesideHolder
    } else {
        Kind::TwoHolders
    }
}
