//! The steps, and their text in the path to a mistake.

use std::fmt;

use super::setting::Fault;
use crate::claims::letter;

/// What happened, and to which claim or key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Asks(usize),
    Arrives(usize),
    ArrivesLate(usize),
    Hears(usize),
    HearsGrant(usize),
    Releases(usize),
    GivesUp(usize),
    IsUndone(usize),
    Resumes(usize),
    Reconnects(usize),
    Fails(Fault, usize),
    Tick,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (claim, what) = match *self {
            Self::Asks(claim) => (claim, "asks"),
            Self::Arrives(claim) => (claim, "has its request executed"),
            Self::ArrivesLate(claim) => (claim, "has a late request executed"),
            Self::Hears(claim) => (claim, "receives the reply"),
            Self::HearsGrant(claim) => (claim, "receives its grant"),
            Self::Releases(claim) => (claim, "is done"),
            Self::GivesUp(claim) => (claim, "gives up"),
            Self::IsUndone(claim) => (claim, "has its release answered"),
            Self::Resumes(claim) => (claim, "runs again"),
            Self::Reconnects(claim) => (claim, "connects again"),
            Self::Fails(fault, at) => match fault {
                Fault::Kill => (at, "is killed"),
                Fault::Stop => (at, "stops"),
                Fault::Timeout => (at, "waits for no answer any more"),
                Fault::LoseGrant => (at, "loses its grant's notification"),
                Fault::LoseUndone => (at, "loses the answer to its release"),
                Fault::Cut => (at, "loses its connection"),
                Fault::Evict => return write!(f, "{} is evicted", letter(at)),
                Fault::Delete => return write!(f, "{} is deleted", letter(at)),
                Fault::Flush => return write!(f, "everything is forgotten"),
            },
            Self::Tick => return write!(f, "a tick passes"),
        };
        write!(f, "{} {what}", claim + 1)
    }
}
