//! A state of the model: what the store holds, what each process knows, and what is on its way.
//!
//! There is no time of day. Whatever expires is stored as the number of ticks until then, so the
//! number of states does not grow with the length of a run.

use crate::claims::queue::Queue;
use crate::claims::{CLAIMS, KEYS, Phase, Process, Wrong};

/// Everything that decides what can happen next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct World {
    pub(crate) keys: [Key; KEYS],
    pub(crate) claims: [Claim; CLAIMS],
    /// The store's fencing counter.
    pub(crate) counter: u8,
    /// How many faults are left.
    pub(crate) faults: u8,
    pub(crate) wrong: Option<Wrong>,
}

/// What the store holds for one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    /// How long each claim's lease lasts; 0 for none.
    pub(crate) leases: [u8; CLAIMS],
    pub(crate) queue: Queue,
    /// The greatest token under which a claim has begun to hold it: any claim, or an exclusive one.
    pub(crate) issued: u8,
    pub(crate) issued_alone: u8,
}

/// A claim, with all that its process knows of it, and what the store keeps under its token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim {
    pub(crate) process: Process,
    /// Its connection has ended, and no new one exists yet.
    pub(crate) cut: bool,
    pub(crate) phase: Phase,
    /// Waiting: ticks until it asks again.
    pub(crate) timer: u8,
    /// Requested: its lease if this very request is granted. Holding: the ticks until its deadline.
    pub(crate) valid: u8,
    /// It may have entries in the store's queues, as far as its process knows.
    pub(crate) entered: bool,
    /// One of its requests got no reply, and no later one did.
    pub(crate) unsure: bool,
    /// Its request is on the way.
    pub(crate) request: bool,
    /// An earlier request, which its process has given up, is on the way.
    pub(crate) late: bool,
    pub(crate) reply: Reply,
    pub(crate) notice: Option<Notice>,
    /// The store: how long its entries last.
    pub(crate) record: u8,
    /// How long they should last: a whole life after each executed request.
    pub(crate) alive: u8,
    /// Its lease was taken from it before its end.
    pub(crate) robbed: bool,
}

/// A reply on its way to the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reply {
    #[default]
    None,
    Refused,
    /// Under this token.
    Granted(u8),
}

/// A grant's notification on its way to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Notice {
    pub(crate) token: u8,
    /// How long the lease lasts; the process knows it from the store's clock.
    pub(crate) left: u8,
    /// The claim was refused since. Its process learns that from the refusal.
    pub(crate) old: bool,
}

impl World {
    /// Records the first thing that is wrong.
    pub(crate) fn record_wrong(&mut self, wrong: Wrong) {
        self.wrong = self.wrong.or(Some(wrong));
    }

    /// Returns whether the claim's process runs and can talk to the store.
    pub(crate) fn talks(&self, claim: usize) -> bool {
        self.claims[claim].process == Process::Runs && !self.claims[claim].cut
    }

    /// Returns whether the claim waits for its locks, as its process sees it.
    pub(crate) fn waits(&self, claim: usize) -> bool {
        self.claims[claim].phase.waits()
    }
}
