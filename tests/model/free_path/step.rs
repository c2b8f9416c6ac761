//! The steps, and their text in the path to a mistake.

use std::fmt;

use super::fault::Fault;
use crate::claims::letter;

/// What happened, and to which claim, process or key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    SendsPair(usize),
    Sets(usize),
    SetsAgain(usize),
    Increments(usize),
    SendsRequest(usize),
    Arrives(usize),
    ArrivesLate(usize),
    ReceivesReply(usize),
    MissesReply(usize),
    ReceivesGrant(usize),
    SendsRenewal(usize),
    SendsExtension(usize),
    Renews(usize),
    ReceivesRenewal(usize),
    HandsOff(usize),
    Releases(usize),
    GivesUp(usize),
    Deletes(usize),
    IsUndone(usize),
    IsUndoneQuietly(usize),
    Resumes(usize),
    Reconnects(usize),
    Heartbeat(usize),
    Reads(usize),
    IntruderLeaves,
    Replicates,
    Fails(Fault, usize),
    Tick,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, what) = match *self {
            Self::SendsPair(claim) => (claim, "sends SET and INCR"),
            Self::Sets(claim) => (claim, "has its SET executed"),
            Self::SetsAgain(claim) => (claim, "has its SET executed again"),
            Self::Increments(claim) => (claim, "has its INCR executed"),
            Self::SendsRequest(claim) => (claim, "sends its request to the script"),
            Self::Arrives(claim) => (claim, "has its request executed"),
            Self::ArrivesLate(claim) => (claim, "has a late command executed"),
            Self::ReceivesReply(claim) => (claim, "receives the reply"),
            Self::MissesReply(claim) => (claim, "stops waiting for the reply"),
            Self::ReceivesGrant(claim) => (claim, "receives its grant"),
            Self::SendsRenewal(claim) => (claim, "sends a renewal"),
            Self::SendsExtension(claim) => (claim, "sends an extension"),
            Self::Renews(claim) => (claim, "has its renewal executed"),
            Self::ReceivesRenewal(claim) => (claim, "receives the reply to its renewal"),
            Self::HandsOff(claim) => (claim, "hands its lease off"),
            Self::Releases(claim) => (claim, "is done"),
            Self::GivesUp(claim) => (claim, "gives up"),
            Self::Deletes(claim) => (claim, "has its lean release answered"),
            Self::IsUndone(claim) => (claim, "has its release answered"),
            Self::IsUndoneQuietly(claim) => (claim, "has a quiet release answered"),
            Self::Resumes(process) => return write!(f, "process {} runs again", process + 1),
            Self::Reconnects(process) => return write!(f, "process {} connects", process + 1),
            Self::Heartbeat(process) => {
                return write!(f, "process {} has a heartbeat", process + 1);
            }
            Self::Reads(key) => return write!(f, "another client reads {}", letter(key)),
            Self::IntruderLeaves => return write!(f, "the other program is done"),
            Self::Replicates => return write!(f, "the replica catches up"),
            Self::Fails(fault, at) => return write_fault(f, fault, at),
            Self::Tick => return write!(f, "a tick passes"),
        };
        write!(f, "{} {what}", at + 1)
    }
}

/// Prints a fault, here and in the model of the queue.
pub(crate) fn write_fault(f: &mut fmt::Formatter<'_>, fault: Fault, at: usize) -> fmt::Result {
    let what = match fault {
        Fault::Kill => return write!(f, "process {} is killed", at + 1),
        Fault::Stop => return write!(f, "process {} stops", at + 1),
        Fault::Cut => return write!(f, "process {} loses its connection", at + 1),
        Fault::Timeout => "stops waiting for the reply",
        Fault::LoseGrant => "loses its grant's notification",
        Fault::LoseUndone => "loses the reply to its release",
        Fault::RedirectSet => "has its SET redirected",
        Fault::RedirectIncrement => "has its INCR redirected",
        Fault::Evict => return write!(f, "{} is evicted", letter(at)),
        Fault::Delete => return write!(f, "{} is deleted", letter(at)),
        Fault::Flush => return write!(f, "everything is forgotten"),
        Fault::Intrude => return write!(f, "another program acquires a"),
        Fault::IntrudeForever => return write!(f, "another program acquires a without an end"),
        Fault::Failover => return write!(f, "the replica takes over"),
        Fault::RoleChange => return write!(f, "the server becomes the replica"),
        Fault::Swap => return write!(f, "the replica takes over unnoticed"),
    };
    write!(f, "{} {what}", at + 1)
}
