//! What a history shows that no lock could have allowed.

use std::fmt;

use crate::{Event, Step};

/// A rule that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Two held at once what they may not share.
    TwoHolders,
    /// More held at once than there are permits.
    TooManyHolders,
    /// One was told that its lease lasts longer, while another held.
    RenewedBesideHolder,
    /// One was told that it gave the lock back, while another held.
    ReleasedBesideHolder,
    /// One was told that it holds, and cannot have held.
    CheckedUnheld,
    /// One was told that its lease lasts longer, and had none.
    RenewedUnheld,
    /// One was told that it gave the lock back, and had none.
    ReleasedUnheld,
    /// One entered a hold again that its call chain does not have.
    ReenteredUnheld,
    /// One left oftener than it had entered again.
    LeftUnentered,
    /// A re-entry had another fencing token than its hold.
    FenceChanged,
    /// Two acquisitions had the same fencing token.
    FenceTwice,
    /// A later acquisition had the smaller fencing token.
    FenceWentBack,
    /// No lock's fault: an end without a beginning, or two calls under one number.
    Misrecorded,
}

/// One break of a rule, with the events that show it.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The rule.
    pub kind: Kind,
    /// The lock.
    pub key: String,
    /// Who did what: the events that cannot all be true, in their order.
    pub events: Vec<Event>,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::TwoHolders,
        Self::TooManyHolders,
        Self::RenewedBesideHolder,
        Self::ReleasedBesideHolder,
        Self::CheckedUnheld,
        Self::RenewedUnheld,
        Self::ReleasedUnheld,
        Self::ReenteredUnheld,
        Self::LeftUnentered,
        Self::FenceChanged,
        Self::FenceTwice,
        Self::FenceWentBack,
        Self::Misrecorded,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TwoHolders => "two holders at once",
            Self::TooManyHolders => "more holders than permits",
            Self::RenewedBesideHolder => "renewed while another held",
            Self::ReleasedBesideHolder => "released while another held",
            Self::CheckedUnheld => "believed without a hold",
            Self::RenewedUnheld => "renewed without a hold",
            Self::ReleasedUnheld => "released without a hold",
            Self::ReenteredUnheld => "entered again without a hold",
            Self::LeftUnentered => "left without having entered again",
            Self::FenceChanged => "another fencing token on re-entry",
            Self::FenceTwice => "the same fencing token twice",
            Self::FenceWentBack => "a smaller fencing token later",
            Self::Misrecorded => "the history is not well recorded",
        })
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, key, events } = self;
        write!(f, "{kind}: `{key}`")?;
        for event in events {
            let Event { at, process, chain, call, step, .. } = event;
            let (seconds, nanoseconds) = (at / 1_000_000_000, at % 1_000_000_000);
            write!(f, "\n  at {seconds}.{nanoseconds:09} s process {process}, chain {chain}: ")?;
            match step {
                Step::Invoke(op) => write!(f, "asks {op:?} (call {call})")?,
                Step::Ok(None) => write!(f, "is told that call {call} was done")?,
                Step::Ok(Some(fence)) => {
                    write!(f, "is told that call {call} was done, with fencing token {fence}")?;
                }
                Step::Fail => write!(f, "is told that call {call} was not done")?,
                Step::Unknown => write!(f, "never learns whether call {call} was done")?,
                Step::Lost => f.write_str("is told that the hold is no more")?,
            }
        }
        Ok(())
    }
}
