//! What is tried: the claims, the circumstances, and the mistakes that the search has to find.

use super::fault::Fault;
use super::mistake::Mistake;
use crate::claims::{CLAIMS, Mode};

/// What one claim wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wants {
    pub(crate) mode: Mode,
    /// The numbers of the keys.
    pub(crate) keys: &'static [usize],
    /// Its caller may give up at any step.
    pub(crate) gives_up: bool,
    /// For how many ticks its locks stay taken after their release (`hold_at_least`).
    pub(crate) keeps: u8,
}

/// The claims and their circumstances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) claims: &'static [Wants],
    /// The process of each claim. A process has one connection.
    pub(crate) process: [usize; CLAIMS],
    /// How many faults there may be, and which.
    pub(crate) faults: u8,
    pub(crate) kinds: &'static [Fault],
    /// How many ticks a lease lasts.
    pub(crate) ttl: u8,
    /// How many ticks an entry lasts after a question.
    pub(crate) life: u8,
    /// How many ticks a queue lasts after a question: at least as long as an entry.
    pub(crate) kept: u8,
    /// After how many ticks a waiter asks again.
    pub(crate) look: u8,
    /// For how many ticks a claim for several keys can be passed over.
    pub(crate) passed_over: u8,
    /// How many times a holder may renew its lease.
    pub(crate) renewals: u8,
    /// For how many ticks a lease lasts that `extend` renews; 0 if no process extends.
    pub(crate) extended: u8,
    /// How many times a holder may pass its lease to another caller of its process.
    pub(crate) hand_overs: u8,
    /// A claim that gave up may free its locks without serving the queue.
    pub(crate) quiet: bool,
    /// Each key is in a slot of its own, which has a counter of its own.
    pub(crate) slots: bool,
    /// Anybody may read who has the locks, at any step.
    pub(crate) reads: bool,
    /// The server has a replica, which lags.
    pub(crate) replica: bool,
    /// By how many whole ticks the replica may lag, and a part of one more.
    pub(crate) lag: u8,
    /// A lease counts only when the replica has it.
    pub(crate) waits_for_replica: bool,
    /// The server executes what a process sends in the order in which it was sent, also where the
    /// process did not wait for an answer.
    pub(crate) in_order: bool,
    pub(crate) mistake: Option<Mistake>,
    /// A claim may leave something behind, which then ends by itself.
    pub(crate) may_leave: bool,
    /// A lock with waiters that is absent is wrong in itself, before anybody comes to harm.
    pub(crate) checks_absence: bool,
}

impl Setting {
    pub(crate) fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub(crate) fn keys(&self, claim: usize) -> &'static [usize] {
        self.claims[claim].keys
    }

    pub(crate) fn mode(&self, claim: usize) -> Mode {
        self.claims[claim].mode
    }

    /// The counter that numbers the claim.
    pub(crate) fn counter(&self, claim: usize) -> usize {
        if self.slots { self.keys(claim)[0] } else { 0 }
    }

    /// Whether the claim is for several keys.
    pub(crate) fn several(&self, claim: usize) -> bool {
        self.keys(claim).len() > 1
    }

    /// Whether two bare commands can take what the claim wants.
    pub(crate) fn is_plain(&self, claim: usize) -> bool {
        self.mode(claim) == Mode::Exclusive && !self.several(claim)
    }

    /// The claims of a process.
    pub(crate) fn of_process(&self, process: usize) -> impl Iterator<Item = usize> + use<> {
        let of = self.process;
        (0..self.claims.len()).filter(move |&claim| of[claim] == process)
    }
}
