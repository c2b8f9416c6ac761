//! A hold, and the time for which it is certain.

use crate::Mode;

/// A position in the history: a total order, also of events with the same time.
pub(crate) type At = usize;

/// One hold of one call chain.
///
/// The grant took effect at some moment between the acquire's invocation and its response. The same
/// is true of every later proof of the hold: a successful check, renewal, re-entry or release. The
/// process may have been paused for long before it recorded the response. So the hold is certain
/// from the acquire's response until the invocation of its last proof, or without a proof at one
/// moment during the acquire.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) mode: Mode,
    pub(crate) fence: Option<u64>,
    /// The first position at which it may have been granted: its acquire's invocation.
    pub(crate) invoked: At,
    /// The last position at which it may have been granted: its acquire's response or, without one,
    /// the response of the first proof.
    pub(crate) responded: At,
    /// The last position at which it is known to be held, if that is after `responded`.
    pub(crate) until: Option<At>,
    /// If the acquire has no response: the invocation of the first proof.
    pub(crate) proved: Option<At>,
    /// The last proof of each kind.
    pub(crate) proofs: Proofs,
}

/// The last call of each kind that proves the hold: its invocation and its response.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Proofs {
    /// A check or a re-entry: the holder relies on its hold.
    pub(crate) reliance: Option<(At, At)>,
    pub(crate) renewal: Option<(At, At)>,
    pub(crate) release: Option<(At, At)>,
}

/// The certain part of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certain {
    /// All the time between two positions.
    Span(At, At),
    /// Some moment between two positions.
    Moment(At, At),
}

impl Hold {
    /// Returns a hold whose acquire has a response.
    pub(crate) fn granted(mode: Mode, fence: Option<u64>, invoked: At, responded: At) -> Self {
        let (until, proved, proofs) = (None, None, Proofs::default());
        Self { mode, fence, invoked, responded, until, proved, proofs }
    }

    pub(crate) fn certain(&self) -> Certain {
        match self.until {
            Some(until) if until > self.responded => Certain::Span(self.responded, until),
            _ => Certain::Moment(self.proved.unwrap_or(self.invoked), self.responded),
        }
    }

    /// Returns the position before which the hold cannot have ended.
    pub(crate) fn end(&self) -> At {
        match self.certain() {
            Certain::Span(_, end) => end,
            Certain::Moment(from, _) => from,
        }
    }

    /// Returns the events that show it: those of its acquire, and of its last proof.
    pub(crate) fn evidence(&self) -> impl Iterator<Item = At> {
        let Proofs { reliance, renewal, release } = self.proofs;
        let proof = [reliance, renewal, release].into_iter().flatten().max();
        let proof = proof.map(|(invoked, responded)| [invoked, responded]);
        [self.invoked, self.responded].into_iter().chain(proof.into_iter().flatten())
    }
}
