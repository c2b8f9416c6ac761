//! What is known of one claim: how it stands with it, what it has in the store, what goes on for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::recipe::{ClaimEntries, Entry};
use crate::store::Claim;

/// What is known of a claim.
#[derive(Debug)]
pub(super) struct ClaimRecord {
    pub(super) claim: Arc<Claim>,
    pub(super) ttl: Duration,
    pub(super) phase: Phase,
    /// None while it is unknown what became of the question.
    pub(super) made: Option<Arc<MadeEntries>>,
    /// What goes on for it: it waits, or looks whether others do.
    pub(super) task: Option<Task>,
    pub(super) ends: Option<(Instant, u64)>,
}

/// How it stands with a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It asks, or it is unknown the answer.
    Asking,
    /// It waits in the queue.
    Waiting {
        /// Whether it is only told, and comes to take what it finds free.
        told: bool,
    },
    /// It has its locks.
    Holding,
    /// It is being removed, and comes back as nothing else: what removes it may arrive at any time.
    Leaving {
        /// Whether it had its locks.
        held: bool,
        /// Which removal was the last.
        removal: u64,
    },
}

/// What is known of a claim that asks.
#[derive(Debug)]
pub(super) enum PriorState {
    /// Nothing.
    New,
    /// It asked before, and it is unknown what became of it.
    Asked,
    /// It has entries.
    HasEntries(Arc<MadeEntries>),
    /// It is being removed.
    Leaving,
}

/// What becomes of a claim whose turn has not come by the lines that it looked at.
#[derive(Debug)]
pub(super) enum NoTurn {
    /// It waits.
    Queued,
    /// It was granted its locks after that look.
    Granted,
    /// It does not wait, and is to be removed.
    Remove(PendingRemoval),
    /// There is nothing of it any more.
    Gone,
}

/// What a claim has in the store.
#[derive(Debug)]
pub(super) struct MadeEntries {
    pub(super) session: u64,
    pub(super) number: u64,
    /// In the line of each key.
    pub(super) entries: Box<[Entry]>,
}

/// A task that ends with what it is for.
#[derive(Debug)]
pub(super) struct Task(Option<AbortHandle>);

impl Task {
    pub(super) fn new(handle: AbortHandle) -> Self {
        Self(Some(handle))
    }

    pub(super) fn is_running(&self) -> bool {
        self.0.as_ref().is_some_and(|handle| !handle.is_finished())
    }

    /// Lets it come to its own end.
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

/// What is to be removed.
#[derive(Debug)]
pub(super) struct PendingRemoval {
    pub(super) claim: Arc<Claim>,
    pub(super) made: Option<Arc<MadeEntries>>,
    pub(super) held: bool,
    /// Which of its removals this is.
    pub(super) removal: u64,
}

impl ClaimRecord {
    /// Whether this is what it has.
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
