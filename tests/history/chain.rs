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
    undecided: Vec<(At, Mode)>,
    /// The number of re-entries that the chain may still be in.
    reentries: usize,
    /// The event that ended its last hold.
    ended_at: Option<At>,
}

/// A call without a response yet, and the state of its chain when it began.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) op: Op,
    at: At,
    hold: Option<usize>,
    has_undecided: bool,
    reentries: usize,
    ended_at: Option<At>,
}

/// A broken rule, and the positions of the events that show it.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    pub(crate) evidence: Vec<At>,
}

impl Finding {
    pub(crate) fn new(kind: Kind, evidence: impl IntoIterator<Item = At>) -> Self {
        let mut evidence: Vec<At> = evidence.into_iter().collect();
        evidence.sort_unstable();
        evidence.dedup();
        Self { kind, evidence }
    }
}

impl Chain {
    pub(crate) fn invoke(&mut self, op: Op, at: At) -> Pending {
        let Self { hold, reentries, ended_at, .. } = *self;
        let has_undecided = !self.undecided.is_empty();
        match op {
            Op::Acquire(mode) => self.undecided.push((at, mode)),
            // While its outcome is unknown, the chain may have re-entered.
            Op::Reenter => self.reentries += 1,
            _ => {}
        }
        Pending { op, at, hold, has_undecided, reentries, ended_at }
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
                self.undecided.retain(|(invoked, _)| *invoked != call.at);
                (self.hold, self.reentries) = (Some(holds.len()), 0);
                holds.push(Hold::granted(mode, fence, call.at, at));
                return None;
            }
            Op::Leave => {
                self.reentries = self.reentries.saturating_sub(1);
                let too_often = Finding::new(Kind::LeftUnentered, [call.at, at]);
                return (call.reentries == 0).then_some(too_often);
            }
            Op::Reenter | Op::Check | Op::Renew | Op::Release => {}
        }
        let Some(index) = self.proved_hold(call, at, holds) else {
            return Some(call.without_hold(at));
        };
        let hold = &mut holds[index];
        hold.until = hold.until.max(Some(call.at));
        let proof = Some((call.at, at));
        let Proofs { reliance, renewal, release } = &mut hold.proofs;
        let latest = match call.op {
            Op::Renew => renewal,
            Op::Release => release,
            _ => reliance,
        };
        *latest = proof.max(*latest);
        if call.op == Op::Release && (self.hold == Some(index) || self.hold == call.hold) {
            self.end(at);
        }
        let changed = matches!((hold.fence, fence), (Some(had), Some(has)) if had != has);
        let changed = changed && call.op == Op::Reenter;
        changed.then(|| Finding::new(Kind::FenceChanged, [hold.responded, call.at, at]))
    }

    /// Handles a call that had no effect.
    pub(crate) fn fail(&mut self, call: &Pending, at: At) {
        match call.op {
            Op::Acquire(_) => self.undecided.retain(|(invoked, _)| *invoked != call.at),
            Op::Reenter => self.reentries = self.reentries.saturating_sub(1),
            // A failed check or release means that the hold is gone. A renewal may fail for other
            // reasons.
            Op::Check | Op::Release if call.hold.is_some() && self.hold == call.hold => {
                self.end(at);
            }
            Op::Check | Op::Release | Op::Renew | Op::Leave => {}
        }
    }

    /// Ends the current hold.
    pub(crate) fn end(&mut self, at: At) {
        (self.hold, self.ended_at) = (None, Some(at));
    }

    /// Returns the hold that a successful call proves.
    fn proved_hold(&mut self, call: &Pending, at: At, holds: &mut Vec<Hold>) -> Option<usize> {
        if !call.has_undecided {
            return call.hold;
        }
        // It proves the current hold, or one whose acquire had an unknown outcome and may have
        // taken effect much later. So it proves one moment, and nothing about the time before.
        let before = call.hold.map(|index| holds[index].mode);
        let mut modes = before.into_iter().chain(self.undecided.iter().map(|(_, mode)| *mode));
        let first = modes.next()?;
        // If the modes differ, all that is certain is that an exclusive holder is excluded.
        let mode = if modes.all(|other| other == first) { first } else { Mode::Shared };
        let index = holds.len();
        let invoked = self.undecided.first().map_or(call.at, |(invoked, _)| *invoked);
        holds.push(Hold { proved: Some(call.at), ..Hold::granted(mode, None, invoked, at) });
        if call.hold.is_none() {
            self.undecided.remove(0);
            self.hold = Some(index);
        }
        Some(index)
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
        Finding::new(kind, self.ended_at.into_iter().chain([self.at, at]))
    }
}
