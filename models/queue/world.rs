//! A state of the model: what the store holds, what each process knows, and what is on its way.
//!
//! There is no time of day. Whatever ends by itself is kept as the number of ticks until then, so that
//! there are as many states as there are situations, however long the story is.

use super::setting::{CLAIMS, KEYS};

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

/// What the store holds for one key. A claim is named by its number, in the queue by one more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    /// How long each claim's lease lasts; 0 for none.
    pub(crate) leases: [u8; CLAIMS],
    pub(crate) queue: [u8; CLAIMS],
    /// How long each claim's entry can still be passed over, where the claim is for several keys.
    pub(crate) fresh: [u8; CLAIMS],
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Process {
    #[default]
    Runs,
    Stopped,
    Dead,
}

/// Where a claim is, as its process sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    #[default]
    NotAsked,
    Asking,
    /// It was refused, or is unsure: it waits for a grant, or until it is time to ask again.
    Waiting,
    Holding,
    /// It gives back what it has, or may have.
    Leaving,
    /// The store has answered that.
    Over,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wrong {
    Conflict,
    TokenNotAbove,
    Overtaken,
    Forgotten,
    PlaceLost,
    RefusedBySelf,
    RefusedByDead,
    NotServed,
    LeftBehind,
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
        matches!(self.claims[claim].phase, Phase::Asking | Phase::Waiting)
    }
}

impl Key {
    /// The claims in the queue, from its head.
    pub(crate) fn queued(&self) -> impl Iterator<Item = usize> + use<> {
        self.queue.into_iter().filter(|&entry| entry > 0).map(|entry| usize::from(entry) - 1)
    }

    pub(crate) fn place(&self, claim: usize) -> Option<usize> {
        self.queued().position(|other| other == claim)
    }

    pub(crate) fn append(&mut self, claim: usize) {
        let end = self.queued().count();
        // There are few claims.
        self.queue[end] = u8::try_from(claim + 1).unwrap_or(u8::MAX);
    }

    pub(crate) fn remove(&mut self, claim: usize) {
        let mut left = self.queued().filter(|&other| other != claim);
        self.queue = [(); CLAIMS]
            .map(|()| left.next().map_or(0, |claim| u8::try_from(claim + 1).unwrap_or(u8::MAX)));
        self.fresh[claim] = 0;
    }
}
