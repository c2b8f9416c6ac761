//! Turns the calls of one call chain on one lock into holds, and checks the rules that need no
//! other chain.

use crate::hold::{At, Hold, Proofs};
use crate::{Kind, Mode, Op};

/// The state of a chain's lock, as the responses so far imply it.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// The chain's current hold: its index among the lock's holds.
    hold: Option<usize>,
    /// Acquires that may have succeeded, or may yet.
    doubts: Vec<(At, Mode)>,
    /// The number of re-entries that the chain may still be in.
    entered: usize,
    /// The event that ended its last hold.
    over: Option<At>,
}

/// A call without a response yet, and the state of its chain when it began.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) op: Op,
    at: At,
    hold: Option<usize>,
    doubtful: bool,
    entered: usize,
    over: Option<At>,
}

/// A broken rule, and the positions of the events that show it.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    pub(crate) shown_by: Vec<At>,
}

impl Finding {
    pub(crate) fn new(kind: Kind, shown_by: impl IntoIterator<Item = At>) -> Self {
        let mut shown_by: Vec<At> = shown_by.into_iter().collect();
        shown_by.sort_unstable();
        shown_by.dedup();
        Self { kind, shown_by }
    }
}

impl Chain {
    pub(crate) fn invoke(&mut self, op: Op, at: At) -> Pending {
        let Self { hold, entered, over, .. } = *self;
        let doubtful = !self.doubts.is_empty();
        match op {
            Op::Acquire(mode) => self.doubts.push((at, mode)),
            // While its outcome is unknown, the chain may have re-entered.
            Op::Reenter => self.entered += 1,
            _ => {}
        }
        Pending { op, at, hold, doubtful, entered, over }
    }

    /// Handles a successful call: updates `holds`, or returns the rule that it broke.
    pub(crate) fn ok(
        &mut self,
        call: &Pending,
        fence: Option<u64>,
        at: At,
        holds: &mut Vec<Hold>,
    ) -> Option<Finding> {
        match call.op {
            Op::Acquire(mode) => {
                self.doubts.retain(|(doubt, _)| *doubt != call.at);
                (self.hold, self.entered) = (Some(holds.len()), 0);
                holds.push(Hold::granted(mode, fence, call.at, at));
                return None;
            }
            Op::Leave => {
                self.entered = self.entered.saturating_sub(1);
                let too_often = Finding::new(Kind::LeftUnentered, [call.at, at]);
                return (call.entered == 0).then_some(too_often);
            }
            Op::Reenter | Op::Check | Op::Renew | Op::Release => {}
        }
        let Some(place) = self.shown(call, at, holds) else {
            return Some(call.without_hold(at));
        };
        let hold = &mut holds[place];
        hold.until = hold.until.max(Some(call.at));
        let proof = Some((call.at, at));
        let Proofs { belief, renewal, release } = &mut hold.proofs;
        let latest = match call.op {
            Op::Renew => renewal,
            Op::Release => release,
            _ => belief,
        };
        *latest = proof.max(*latest);
        if call.op == Op::Release && (self.hold == Some(place) || self.hold == call.hold) {
            self.ended(at);
        }
        let changed = matches!((hold.fence, fence), (Some(had), Some(has)) if had != has);
        let changed = changed && call.op == Op::Reenter;
        changed.then(|| Finding::new(Kind::FenceChanged, [hold.told, call.at, at]))
    }

    /// Handles a call that had no effect.
    pub(crate) fn fail(&mut self, call: &Pending, at: At) {
        match call.op {
            Op::Acquire(_) => self.doubts.retain(|(doubt, _)| *doubt != call.at),
            Op::Reenter => self.entered = self.entered.saturating_sub(1),
            // A failed check or release means that the hold is gone. A renewal may fail for other
            // reasons.
            Op::Check | Op::Release if call.hold.is_some() && self.hold == call.hold => {
                self.ended(at);
            }
            Op::Check | Op::Release | Op::Renew | Op::Leave => {}
        }
    }

    /// Ends the current hold.
    pub(crate) fn ended(&mut self, at: At) {
        (self.hold, self.over) = (None, Some(at));
    }

    /// Returns the hold that a successful call proves.
    fn shown(&mut self, call: &Pending, at: At, holds: &mut Vec<Hold>) -> Option<usize> {
        if !call.doubtful {
            return call.hold;
        }
        // It proves the current hold, or one whose acquire had an unknown outcome and may have
        // taken effect much later. So it proves one moment, and nothing about the time before.
        let before = call.hold.map(|place| holds[place].mode);
        let mut modes = before.into_iter().chain(self.doubts.iter().map(|(_, mode)| *mode));
        let first = modes.next()?;
        // If the modes differ, all that is certain is that an exclusive holder is excluded.
        let mode = if modes.all(|other| other == first) { first } else { Mode::Shared };
        let place = holds.len();
        let asked = self.doubts.first().map_or(call.at, |(asked, _)| *asked);
        holds.push(Hold { proved: Some(call.at), ..Hold::granted(mode, None, asked, at) });
        if call.hold.is_none() {
            self.doubts.remove(0);
            self.hold = Some(place);
        }
        Some(place)
    }
}

impl Pending {
    fn without_hold(&self, at: At) -> Finding {
        let kind = match self.op {
            Op::Renew => Kind::RenewedUnheld,
            Op::Release => Kind::ReleasedUnheld,
            Op::Reenter => Kind::ReenteredUnheld,
            _ => Kind::CheckedUnheld,
        };
        Finding::new(kind, self.over.into_iter().chain([self.at, at]))
    }
}
