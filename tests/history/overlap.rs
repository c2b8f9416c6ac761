//! Who held at once: one pass over the holds of a lock, by position.

use std::collections::{BTreeMap, BTreeSet};

use crate::chain::Finding;
use crate::hold::{At, Certain, Hold};
use crate::{Kind, Mode};

/// Something that changes who is inside.
enum Edge {
    Begins(usize),
    Ends(usize),
    /// A hold that is certain for one moment only must have found it by now.
    Due(usize, At),
}

/// Who is certainly inside, by the ends of their spans.
#[derive(Default)]
struct Inside {
    exclusive: BTreeMap<At, usize>,
    shared: BTreeMap<At, usize>,
    permits: BTreeMap<At, usize>,
}

/// Findings, and the holds that are among their culprits as the later ones.
pub(crate) fn find(holds: &[Hold]) -> (Vec<Finding>, BTreeSet<usize>) {
    let mut edges = Vec::with_capacity(holds.len() * 2);
    // The modes whose moments have to be found, and up to where each was possible the last time.
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
                // It was possible until somebody came who keeps it out.
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

    /// Who keeps a new one of this mode out, if that is certain.
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

    /// Who cannot have been inside together with this one, which has just begun.
    fn crowd_with(&self, place: usize, holds: &[Hold]) -> Option<(Kind, usize)> {
        let new = &holds[place];
        // Where limits differ, who asked for the highest may have come last.
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

/// How the earlier of two shows that it was still there, and what that says of it.
fn beside(earlier: &Hold, later: &Hold) -> Kind {
    let proofs = earlier.proofs;
    let began = later.told;
    let after = |proof: Option<(At, At)>| proof.filter(|(asked, _)| *asked > began);
    // The other was there before and after that answer: it was not the answerer's to give.
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
