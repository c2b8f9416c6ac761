//! One line of a history.

use serde::{Deserialize, Serialize};

/// Something that a process asked, was told or noticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Nanoseconds by a clock that never goes back and that all processes of the history share.
    pub at: u64,
    /// Which process, by a number that no other one of the history has, in any of its lives.
    pub process: u32,
    /// Which call chain in it. Who enters a hold again does so in the chain that has it.
    pub chain: u32,
    /// Which call in it: the same for the question and its answer.
    pub call: u64,
    /// The lock.
    pub key: String,
    /// What happened.
    pub step: Step,
}

/// What happened to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// It began.
    Invoke(Op),
    /// It was done; with the fencing token, where it has one.
    Ok(Option<u64>),
    /// It was not done, and never will be.
    Fail,
    /// It is unknown whether it was done, or will be. A call without any end counts as this.
    Unknown,
    /// No call: the chain was told that the hold is no more.
    Lost,
}

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// To have the lock. A hand-off is an acquire as any other: who gets in that way reports it.
    Acquire(Mode),
    /// To enter the hold that this chain has already.
    Reenter,
    /// To leave what was entered again.
    Leave,
    /// Whether the lock is held, at this moment (`ensure_held`).
    Check,
    /// To have the lease last longer.
    Renew,
    /// To give the lock back.
    Release,
}

/// With whom a lock is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// With no other process.
    Exclusive,
    /// With all who want it shared.
    Shared,
    /// With so many in all, whichever process they are.
    Permits(u32),
}
