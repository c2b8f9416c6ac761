//! What is tried: the claims, the circumstances, and the mistakes that the search has to find.

use crate::claims::Mode;

/// What one process claims. Each claim is that of a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wants {
    pub(crate) mode: Mode,
    /// The numbers of the keys.
    pub(crate) keys: &'static [usize],
    /// Its caller may give up at any step.
    pub(crate) gives_up: bool,
}

/// What may go wrong around the protocol. Each time counts against [`Setting::faults`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A process ends, and its connection with it.
    Kill,
    /// A process stops, or is cut off in a way that the store does not notice: its connection counts.
    Stop,
    /// A question or its answer is lost, or comes after the process has turned to other things.
    Timeout,
    /// A grant's notification is lost.
    LoseGrant,
    /// The answer to a release is lost.
    LoseUndone,
    /// The connection of a process ends: what was on its way is lost, and no grant is heard.
    Cut,
    /// An operator evicts the holders of a key.
    Evict,
    /// A program deletes a key by hand.
    Delete,
    /// The store forgets everything.
    Flush,
}

/// All faults that leave to the store what it knows.
pub(crate) const OF_PROCESSES: &[Fault] =
    &[Fault::Kill, Fault::Stop, Fault::Timeout, Fault::LoseGrant, Fault::LoseUndone, Fault::Cut];

/// All faults.
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
    /// A process that gave up sends its release once, whether it is answered or not.
    UndoesOnce,
    /// A claim that has the lock already, and asks again, is refused.
    AdoptsNothing,
    /// Asking again does not renew the entry.
    LookRenewsNothing,
    /// Asking again moves the entry to the end of the queue.
    LookMovesToTheEnd,
    /// A release does not serve the queue.
    ReleaseServesNothing,
    /// A lock that is free is granted whatever its queue holds.
    Overtakes,
    /// A claim for several keys is granted if it is first in the queue of one of them.
    OneQueueIsEnough,
    /// An entry that has lapsed, and that no script has met, is in its old place when its claim asks
    /// again: in one of its queues, maybe, and not in the other.
    LapsedKeepsPlace,
    /// The release of a claim that was granted leaves its entries, though one of its questions got no
    /// answer and may have made some since.
    ReleaseLeavesEntries,
    /// A grant's notification counts also if an answer that was given later says otherwise.
    OldGrantCounts,
    /// A process counts its lease from when it learns of the grant.
    CountsFromHearing,
    /// What is granted by a message lasts a whole TTL, however long its process has been silent.
    GrantsLastATtl,
}

/// The claims and their circumstances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) claims: &'static [Wants],
    /// How many faults there may be, and which.
    pub(crate) faults: u8,
    pub(crate) kinds: &'static [Fault],
    /// How many ticks a lease lasts.
    pub(crate) ttl: u8,
    /// How many ticks an entry lasts.
    pub(crate) life: u8,
    /// After how many ticks a waiter asks again.
    pub(crate) look: u8,
    /// For how many ticks a claim for several keys can be passed over.
    pub(crate) passed_over: u8,
    /// The store executes what a process sends in the order in which it was sent, also where the
    /// process did not wait for an answer.
    pub(crate) in_order: bool,
    /// Another program hears every channel, so that no grant is unheard.
    pub(crate) monitored: bool,
    /// Also a question that is granted must serve the claims behind it, and a grant of several keys
    /// those that wait for its other keys.
    pub(crate) each_question_serves: bool,
    pub(crate) mistake: Option<Mistake>,
    /// A process may leave something behind in the store, which then ends by itself.
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

    /// Whether the claim is for several keys.
    pub(crate) fn several(&self, claim: usize) -> bool {
        self.keys(claim).len() > 1
    }
}
