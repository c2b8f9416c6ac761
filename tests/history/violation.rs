//! The violations that a history can have.

use std::fmt;

use crate::{Event, Step};

/// The rule that a violation breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Two holders that may not share the lock held it at once.
    TwoHolders,
    /// There were more holders at once than permits.
    TooManyHolders,
    /// A renewal succeeded while another process held the lock.
    RenewedBesideHolder,
    /// A release succeeded while another process held the lock.
    ReleasedBesideHolder,
    /// A check succeeded without a hold.
    CheckedUnheld,
    /// A renewal succeeded without a hold.
    RenewedUnheld,
    /// A release succeeded without a hold.
    ReleasedUnheld,
    /// A re-entry succeeded without a hold of its call chain.
    ReenteredUnheld,
    /// A chain left its hold more often than it re-entered.
    LeftUnentered,
    /// A re-entry had a different fencing token than its hold.
    FenceChanged,
    /// Two acquisitions had the same fencing token.
    FenceTwice,
    /// A later acquisition had a smaller fencing token.
    FenceWentBack,
    /// The recording is wrong: an outcome without an invocation, or two calls with one number.
    Misrecorded,
}

/// A broken rule, with the events that show it.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The broken rule.
    pub kind: Kind,
    /// The lock's key.
    pub key: String,
    /// The events that contradict each other, in order.
    pub events: Vec<Event>,
}

impl Kind {
    /// All rules.
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
            Self::Misrecorded => "the history is recorded incorrectly",
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
                Step::Invoke(op) => write!(f, "calls {op:?} (call {call})")?,
                Step::Ok(None) => write!(f, "call {call} succeeded")?,
                Step::Ok(Some(fence)) => {
                    write!(f, "call {call} succeeded, with fencing token {fence}")?;
                }
                Step::Fail => write!(f, "call {call} had no effect")?,
                Step::Unknown => write!(f, "the outcome of call {call} is unknown")?,
                Step::Lost => f.write_str("is notified that it lost the hold")?,
            }
        }
        Ok(())
    }
}
