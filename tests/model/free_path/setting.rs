//! What a search tries: the claims, the circumstances, and the mistake to be found.

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
    /// How many faults may happen, and of which kinds.
    pub(crate) faults: u8,
    pub(crate) kinds: &'static [Fault],
    /// The ticks of a lease.
    pub(crate) ttl: u8,
    /// The ticks that an entry lasts after a request.
    pub(crate) life: u8,
    /// The ticks that a queue lasts after a request: at least as long as an entry.
    pub(crate) kept: u8,
    /// The ticks until a waiter asks again.
    pub(crate) recheck: u8,
    /// The ticks for which a claim for several keys can be passed over.
    pub(crate) passed_over: u8,
    /// How many times a holder may renew its lease.
    pub(crate) renewals: u8,
    /// The ticks of a lease that `extend` renews; 0 if no process extends.
    pub(crate) extended: u8,
    /// How many times a holder may hand its lease to another caller of its process.
    pub(crate) hand_offs: u8,
    /// A claim that gave up may release its locks without serving the queue.
    pub(crate) quiet: bool,
    /// Each key is in a slot of its own, with its own counter.
    pub(crate) slots: bool,
    /// Any client may read the holders, at any step.
    pub(crate) reads: bool,
    /// The server has a replica, which lags.
    pub(crate) replica: bool,
    /// By how many whole ticks the replica may lag, plus a part of one.
    pub(crate) lag: u8,
    /// A lease counts only when the replica has it.
    pub(crate) waits_for_replica: bool,
    /// The server executes a process's requests in the order in which they were sent, even if the
    /// process did not wait for a reply.
    pub(crate) in_order: bool,
    pub(crate) mistake: Option<Mistake>,
    /// A claim may leave something behind, which then expires.
    pub(crate) may_leave: bool,
    /// An absent lock with waiters is wrong in itself, before it harms a client.
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

    /// The counter of the claim.
    pub(crate) fn counter(&self, claim: usize) -> usize {
        if self.slots { self.keys(claim)[0] } else { 0 }
    }

    /// Returns whether the claim is for several keys.
    pub(crate) fn several(&self, claim: usize) -> bool {
        self.keys(claim).len() > 1
    }

    /// Returns whether two bare commands can acquire what the claim wants.
    pub(crate) fn is_plain(&self, claim: usize) -> bool {
        self.mode(claim) == Mode::Exclusive && !self.several(claim)
    }

    /// The claims of a process.
    pub(crate) fn of_process(&self, process: usize) -> impl Iterator<Item = usize> + use<> {
        let of = self.process;
        (0..self.claims.len()).filter(move |&claim| of[claim] == process)
    }
}
