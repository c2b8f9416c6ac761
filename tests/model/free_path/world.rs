//! A state of the model: what the server holds, what each process knows, and what is on its way.

use super::server::Server;
use crate::claims::{CLAIMS, KEYS, Phase, Process, Wrong};

/// The smallest token that a clock can have given. A smaller token was counted from nothing.
pub(crate) const FLOOR: u8 = 16;

/// Everything that decides what can happen next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) replica: Server,
    /// How many ticks ago the replica last had all that the server has.
    pub(crate) behind: u8,
    pub(crate) claims: [Claim; CLAIMS],
    /// The connection of each process.
    pub(crate) links: [Link; CLAIMS],
    /// The greatest token of each counter that any server has given. The servers' clock is ahead
    /// of it; here the next token by the clock is one more.
    pub(crate) clocks: [u8; KEYS],
    /// For each key, the greatest token under which it was acquired: by any claim, or by an
    /// exclusive one.
    pub(crate) top: [u8; KEYS],
    pub(crate) top_alone: [u8; KEYS],
    /// How long another program believes that it holds the first key.
    pub(crate) intruder: u8,
    /// How many faults are left.
    pub(crate) faults: u8,
    pub(crate) wrong: Option<Wrong>,
}

/// A process, and its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    pub(crate) process: Process,
    /// The connection has ended, and no new one exists yet.
    pub(crate) cut: bool,
    /// Which counters a script has raised over this connection: a bare `INCR` may follow.
    pub(crate) raised: [bool; KEYS],
    /// The greatest token of each counter that this process has seen.
    pub(crate) seen: [u8; KEYS],
}

/// A claim, with all that its process knows of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim {
    pub(crate) phase: Phase,
    /// Waiting: ticks until it asks again.
    pub(crate) timer: u8,
    /// Requested: its lease if this very request is granted. Holding: the ticks until its deadline.
    pub(crate) valid: u8,
    /// It may have entries in the store's queues, as far as its process knows.
    pub(crate) entered: bool,
    /// One of its requests to the script got no reply, and no later one did.
    pub(crate) unsure: bool,
    /// Leaving: its process tries the lean release first.
    pub(crate) lean: bool,
    /// Requested: what is on its way, or has come.
    pub(crate) message: Message,
    /// Requested with a pair: the greatest token that its process had seen before.
    pub(crate) seen: u8,
    /// How many commands of a pair that its process has given up are on the way.
    pub(crate) late_pair: u8,
    /// A request to the script that its process has given up is on the way.
    pub(crate) late_script: bool,
    pub(crate) notice: Option<Notice>,
    pub(crate) renewal: RenewRequest,
    /// How long it holds if this renewal succeeds.
    pub(crate) renewed: u8,
    /// How many renewals and hand-offs it has left.
    pub(crate) renewals: u8,
    pub(crate) hand_offs: u8,
    /// How long its entries should last: a whole life after each executed request.
    pub(crate) alive: u8,
    /// Its lease was taken from it before its end.
    pub(crate) robbed: bool,
    /// Another claim has acquired one of its keys since it was given its token.
    pub(crate) passed: bool,
}

/// A request and its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Message {
    /// Nothing: it was lost.
    #[default]
    None,
    /// `SET NX` and `INCR` are on the way.
    Pair,
    /// The `SET` is executed, and the `INCR` is on the way.
    Half(Set),
    /// The same `SET` is on the way again: the token was counted before it.
    Again(Grant),
    /// The pair got its reply, and does not count.
    Void {
        error: bool,
    },
    /// The script is on the way.
    Script,
    Refused,
    Granted(Grant),
}

/// The outcome of the `SET` of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Set {
    Done,
    Refused,
    Redirected,
}

/// A reply that grants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Grant {
    pub(crate) token: u8,
    /// The token is not above all those under which the key was acquired before.
    pub(crate) stale: bool,
    /// The reply to a pair of commands, not to a script.
    pub(crate) bare: bool,
    /// The server that sent it has been replaced since.
    pub(crate) old: bool,
    /// The replica has what was granted.
    pub(crate) replicated: bool,
}

/// A grant's notification on its way to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Notice {
    pub(crate) token: u8,
    pub(crate) stale: bool,
    /// How long the lease lasts; the process knows it from the store's clock.
    pub(crate) left: u8,
    /// The claim was refused since. Its process learns that from the refusal.
    pub(crate) old: bool,
}

/// A renewal of a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RenewRequest {
    #[default]
    None,
    /// On the way, for this many ticks.
    Sent(u8),
    /// Executed; whether the replica has it.
    Renewed { replicated: bool },
    /// The claim does not have its locks.
    Lost,
}

impl World {
    /// Records the first thing that is wrong.
    pub(crate) fn record_wrong(&mut self, wrong: Wrong) {
        self.wrong = self.wrong.or(Some(wrong));
    }

    /// Returns whether the claim waits for its locks, as its process sees it.
    pub(crate) fn waits(&self, claim: usize) -> bool {
        self.claims[claim].phase.waits()
    }
}
