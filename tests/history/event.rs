//! The events of a history.

use serde::{Deserialize, Serialize};

/// One line of a history: a call, its outcome or a loss, as a process recorded it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Nanoseconds of a monotonic clock that all processes of the history share.
    pub at: u64,
    /// The number of the process, which no other process of the history has, restarts included.
    pub process: u32,
    /// The call chain in the process. A re-entry belongs to the chain that has the hold.
    pub chain: u32,
    /// The call's number in the process, the same for its invocation and its outcome.
    pub call: u64,
    /// The lock's key.
    pub key: String,
    /// The step of the call.
    pub step: Step,
}

/// A step of a call, or a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The call began.
    Invoke(Op),
    /// The call succeeded, with the fencing token if it has one.
    Ok(Option<u64>),
    /// The call had no effect, and never will.
    Fail,
    /// It is unknown whether the call had, or will have, an effect. A call without an outcome
    /// counts as unknown.
    Unknown,
    /// Not a call: the chain was notified that it lost the hold.
    Lost,
}

/// The operation of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Acquire the lock. A hand-off is an acquire too: the new holder records it.
    Acquire(Mode),
    /// Enter a hold that this chain already has.
    Reenter,
    /// Leave a re-entered hold.
    Leave,
    /// Check that the lock is held now (`ensure_held`).
    Check,
    /// Renew the lease.
    Renew,
    /// Release the lock.
    Release,
}

/// How a hold is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// No other holders.
    Exclusive,
    /// Any number of shared holders.
    Shared,
    /// At most this many holders in all.
    Permits(u32),
}
