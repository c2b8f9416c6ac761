//! A state of the model: what the store holds, what each process knows, and what is on its way.
//!
//! There is no time of day. Whatever ends by itself is kept as the number of ticks until then, so that
//! there are as many states as there are situations, however long the story is.

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
    /// The largest token under which a claim has begun to hold it: any claim, or an exclusive one.
    pub(crate) issued: u8,
    pub(crate) issued_alone: u8,
}

/// A claim, with all that its process knows of it, and what the store keeps under its token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim {
    pub(crate) process: Process,
    /// Its connection has ended, and it has none yet.
    pub(crate) cut: bool,
    pub(crate) phase: Phase,
    /// Waiting: ticks until it asks again.
    pub(crate) timer: u8,
    /// Asking: the lease it has if this very question is granted. Holding: until its deadline.
    pub(crate) valid: u8,
    /// It may have entries in the store's queues, as far as its process knows.
    pub(crate) entered: bool,
    /// One of its questions got no answer, and no later one did.
    pub(crate) unsure: bool,
    /// Its question is on the way.
    pub(crate) question: bool,
    /// An earlier question is on the way, which its process has given up.
    pub(crate) late: bool,
    pub(crate) answer: Answer,
    pub(crate) notice: Option<Notice>,
    /// The store: how long its entries last.
    pub(crate) record: u8,
    /// How long they should last: a whole life after each question that was executed.
    pub(crate) alive: u8,
    /// Its lease was taken from it before its time.
    pub(crate) robbed: bool,
}

/// An answer on its way to the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
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
    /// How long the lease lasts, which the process knows from the store's clock.
    pub(crate) left: u8,
    /// The claim was refused since, which its process knows when it hears that.
    pub(crate) old: bool,
}

impl World {
    /// Notes the first thing that is wrong.
    pub(crate) fn blame(&mut self, wrong: Wrong) {
        self.wrong = self.wrong.or(Some(wrong));
    }

    /// The claim runs, and can talk to the store.
    pub(crate) fn talks(&self, claim: usize) -> bool {
        self.claims[claim].process == Process::Runs && !self.claims[claim].cut
    }

    /// The claim waits for its locks, as its process sees it.
    pub(crate) fn waits(&self, claim: usize) -> bool {
        self.claims[claim].phase.waits()
    }
}
