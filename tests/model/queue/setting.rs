//! What a search tries: the claims, the circumstances, and the mistakes to be found.

use crate::claims::Mode;
pub(crate) use crate::free_path::fault::{Fault, OF_PROCESSES};

/// What one process claims. Each claim belongs to a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wants {
    pub(crate) mode: Mode,
    /// The numbers of the keys.
    pub(crate) keys: &'static [usize],
    /// Its caller may give up at any step.
    pub(crate) gives_up: bool,
}

/// All faults of this model, of those that both models have.
pub(crate) const ALL: &[Fault] = &[
    Fault::Kill,
    Fault::Stop,
    Fault::Timeout,
    Fault::LoseGrant,
    Fault::LoseUndone,
    Fault::Cut,
    Fault::Evict,
    Fault::Delete,
    Fault::Flush,
];

/// A mistake in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// An entry lasts until its claim asks again or leaves.
    EntriesNeverEnd,
    /// A process that gave up sends its release once, whether it gets a reply or not.
    UndoesOnce,
    /// A claim that already has the lock, and asks again, is refused.
    AdoptsNothing,
    /// Asking again does not renew the entry.
    RecheckRenewsNothing,
    /// Asking again moves the entry to the end of the queue.
    RecheckMovesToTheEnd,
    /// A release does not serve the queue.
    ReleaseServesNothing,
    /// A free lock is granted whatever its queue contains.
    Overtakes,
    /// A claim for several keys is granted if it is first in the queue of one of them.
    OneQueueIsEnough,
    /// A lapsed entry that no script has met keeps its place when its claim asks again: possibly in
    /// one of its queues, and not in the other.
    LapsedKeepsPlace,
    /// The release of a granted claim leaves its entries, although one of its requests got no reply
    /// and may have created some since.
    ReleaseLeavesEntries,
    /// A grant's notification counts even if a later reply contradicts it.
    OldGrantCounts,
    /// A process counts its lease from when it learns of the grant.
    CountsFromReceipt,
    /// A lease granted by notification lasts a whole TTL, however long its process has been silent.
    GrantsLastATtl,
}

/// The claims and their circumstances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) claims: &'static [Wants],
    /// How many faults may happen, and of which kinds.
    pub(crate) faults: u8,
    pub(crate) kinds: &'static [Fault],
    /// The ticks of a lease.
    pub(crate) ttl: u8,
    /// The ticks of an entry.
    pub(crate) life: u8,
    /// The ticks until a waiter asks again.
    pub(crate) recheck: u8,
    /// The ticks for which a claim for several keys can be passed over.
    pub(crate) passed_over: u8,
    /// The store executes a process's requests in the order in which they were sent, even if the
    /// process did not wait for a reply.
    pub(crate) in_order: bool,
    /// Another program subscribes to every channel, so that every grant seems to be received.
    pub(crate) monitored: bool,
    /// A granted request must also serve the claims behind it, and a grant of several keys the
    /// claims that wait for its other keys.
    pub(crate) each_request_serves: bool,
    pub(crate) mistake: Option<Mistake>,
    /// A process may leave something behind in the store, which then expires.
    pub(crate) may_leave: bool,
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

    /// Returns whether the claim is for several keys.
    pub(crate) fn several(&self, claim: usize) -> bool {
        self.keys(claim).len() > 1
    }
}
