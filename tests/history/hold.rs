//! A hold as far as it is certain.

use crate::Mode;

/// Where in the history, by position: a total order, also of events with the same time.
pub(crate) type At = usize;

/// One hold of one call chain.
///
/// The grant lies anywhere between the question and the answer, and so does every later proof of the
/// hold: a check, a renewal, a re-entry or a release that was answered with yes. Who was answered may
/// have stood still for long since. So the hold is certain from the answer to its acquire until the
/// question of its last proof; and without a proof, at one moment during the acquire.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) mode: Mode,
    pub(crate) fence: Option<u64>,
    /// The first moment at which it may have been granted: its acquire was asked.
    pub(crate) asked: At,
    /// The last moment at which it may have been granted: its answer; or, where that never came, the
    /// answer to the first proof.
    pub(crate) told: At,
    /// The last moment known to be in it, where that is after `told`.
    pub(crate) until: Option<At>,
    /// Where the acquire was not answered: the question of the first proof.
    pub(crate) proved: Option<At>,
    /// The latest proof of each sort.
    pub(crate) proofs: Proofs,
}

/// The last call of each sort that shows the hold: its question and its answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Proofs {
    /// A check or a re-entry: the holder itself goes on.
    pub(crate) belief: Option<(At, At)>,
    pub(crate) renewal: Option<(At, At)>,
    pub(crate) release: Option<(At, At)>,
}

/// How much of a hold is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certain {
    /// All the time between two positions.
    Span(At, At),
    /// Some moment between two positions.
    Moment(At, At),
}

impl Hold {
    /// One whose acquire was answered.
    pub(crate) fn granted(mode: Mode, fence: Option<u64>, asked: At, told: At) -> Self {
        let (until, proved, proofs) = (None, None, Proofs::default());
        Self { mode, fence, asked, told, until, proved, proofs }
    }

    pub(crate) fn certain(&self) -> Certain {
        match self.until {
            Some(until) if until > self.told => Certain::Span(self.told, until),
            _ => Certain::Moment(self.proved.unwrap_or(self.asked), self.told),
        }
    }

    pub(crate) fn is_exclusive(&self) -> bool {
        self.mode == Mode::Exclusive
    }

    /// The last position at which it must have been granted already, and cannot have ended.
    pub(crate) fn end(&self) -> At {
        match self.certain() {
            Certain::Span(_, end) => end,
            Certain::Moment(from, _) => from,
        }
    }

    /// What shows it: its grant, and its latest proof.
    pub(crate) fn shown_by(&self) -> impl Iterator<Item = At> {
        let Proofs { belief, renewal, release } = self.proofs;
        let proof = [belief, renewal, release].into_iter().flatten().max();
        let proof = proof.map(|(asked, told)| [asked, told]);
        [self.asked, self.told].into_iter().chain(proof.into_iter().flatten())
    }
}
