//! The steps, and their text in the path to a mistake.

use std::fmt;

use super::setting::Fault;
use crate::free_path::step::write_fault;

/// What happened, and to which claim or key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    SendsRequest(usize),
    Arrives(usize),
    ArrivesLate(usize),
    ReceivesReply(usize),
    ReceivesGrant(usize),
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
            Self::SendsRequest(claim) => (claim, "sends its request"),
            Self::Arrives(claim) => (claim, "has its request executed"),
            Self::ArrivesLate(claim) => (claim, "has a late request executed"),
            Self::ReceivesReply(claim) => (claim, "receives the reply"),
            Self::ReceivesGrant(claim) => (claim, "receives its grant"),
            Self::Releases(claim) => (claim, "is done"),
            Self::GivesUp(claim) => (claim, "gives up"),
            Self::IsUndone(claim) => (claim, "has its release answered"),
            Self::Resumes(claim) => (claim, "runs again"),
            Self::Reconnects(claim) => (claim, "connects again"),
            Self::Fails(fault, at) => return write_fault(f, fault, at),
            Self::Tick => return write!(f, "a tick passes"),
        };
        write!(f, "{} {what}", claim + 1)
    }
}
