//! The state of one claim: its phase, its entries in the store, and the task that runs for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::recipe::{ClaimEntries, Entry};
use crate::store::Claim;

/// The state of a claim.
#[derive(Debug)]
pub(super) struct ClaimRecord {
    pub(super) claim: Arc<Claim>,
    pub(super) ttl: Duration,
    pub(super) phase: Phase,
    /// `None` while the outcome of the request is unknown.
    pub(super) made: Option<Arc<MadeEntries>>,
    /// Waits for the claim's turn, or watches whether other claims wait.
    pub(super) task: Option<Task>,
    pub(super) ends: Option<(Instant, u64)>,
}

/// The phase of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// An acquire runs, or its outcome is unknown.
    Acquiring,
    /// It waits in the queue.
    Waiting {
        /// Whether it is only notified to ask again, and then acquires what is free.
        notify_only: bool,
    },
    /// It holds its locks.
    Holding,
    /// It is being removed, and enters no other phase: the removal may be executed at any time.
    Leaving {
        /// Whether it held its locks.
        held: bool,
        /// The number of its last removal.
        removal: u64,
    },
}

/// What the store knows about a claim that asks to acquire.
#[derive(Debug)]
pub(super) enum PriorState {
    /// Nothing.
    New,
    /// It asked before, with an unknown outcome.
    Requested,
    /// It has entries.
    HasEntries(Arc<MadeEntries>),
    /// It is being removed.
    Leaving,
}

/// What happens to a claim whose turn has not come, by the queues that it read.
#[derive(Debug)]
pub(super) enum NoTurn {
    /// It waits.
    Queued,
    /// It was granted its locks after the queues were read.
    Granted,
    /// It does not wait, and must be removed.
    Remove(PendingRemoval),
    /// It has no entries any more.
    Gone,
}

/// The entries of a claim in the store.
#[derive(Debug)]
pub(super) struct MadeEntries {
    pub(super) session: u64,
    pub(super) counter: u64,
    /// One in the queue of each key.
    pub(super) entries: Box<[Entry]>,
}

/// A task that is aborted when this is dropped.
#[derive(Debug)]
pub(super) struct Task(Option<AbortHandle>);

impl Task {
    pub(super) fn new(handle: AbortHandle) -> Self {
        Self(Some(handle))
    }

    pub(super) fn is_running(&self) -> bool {
        self.0.as_ref().is_some_and(|handle| !handle.is_finished())
    }

    /// Lets the task run to its end.
    pub(super) fn detach(mut self) {
        self.0 = None;
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            handle.abort();
        }
    }
}

/// A claim to remove.
#[derive(Debug)]
pub(super) struct PendingRemoval {
    pub(super) claim: Arc<Claim>,
    pub(super) made: Option<Arc<MadeEntries>>,
    pub(super) held: bool,
    /// The number of this removal.
    pub(super) removal: u64,
}

impl ClaimRecord {
    /// Whether these are its entries.
    pub(super) fn has(&self, made: &Arc<MadeEntries>) -> bool {
        self.made.as_ref().is_some_and(|known| Arc::ptr_eq(known, made))
    }
}

impl PendingRemoval {
    pub(super) fn entries(&self) -> ClaimEntries<'_> {
        match &self.made {
            Some(made) => made.of(&self.claim),
            None => ClaimEntries {
                keys: self.claim.keys(),
                token: self.claim.token(),
                session: 0,
                entries: &[],
            },
        }
    }
}

impl MadeEntries {
    pub(super) fn of<'a>(&'a self, claim: &'a Claim) -> ClaimEntries<'a> {
        ClaimEntries {
            keys: claim.keys(),
            token: claim.token(),
            session: self.session,
            entries: &self.entries,
        }
    }
}
