//! What is known of one claim: how it stands with it, what it has in the store, what goes on for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::ensemble::{Entry, Held};
use crate::store::Claim;

/// What is known of a claim.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) claim: Arc<Claim>,
    pub(super) ttl: Duration,
    pub(super) is: Is,
    /// None while nobody knows what became of the question.
    pub(super) made: Option<Arc<Made>>,
    /// What goes on for it: it waits, or looks whether others do.
    pub(super) task: Option<Task>,
    pub(super) ends: Option<(Instant, u64)>,
}

/// How it stands with a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Is {
    /// It asks, or nobody knows the answer.
    Asking,
    /// It stands in line.
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
pub(super) enum Known {
    /// Nothing.
    New,
    /// It asked before, and nobody knows what became of it.
    Asked,
    /// It has entries.
    Made(Arc<Made>),
    /// It is being removed.
    Leaves,
}

/// What becomes of a claim whose turn has not come by the lines that it looked at.
#[derive(Debug)]
pub(super) enum Stands {
    /// It waits.
    InLine,
    /// It was granted its locks after that look.
    Granted,
    /// It does not wait, and is to be removed.
    Leaves(Leaver),
    /// There is nothing of it any more.
    Gone,
}

/// What a claim has in the store.
#[derive(Debug)]
pub(super) struct Made {
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

    pub(super) fn goes_on(&self) -> bool {
        self.0.as_ref().is_some_and(|handle| !handle.is_finished())
    }

    /// Lets it come to its own end.
    pub(super) fn let_go(mut self) {
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
pub(super) struct Leaver {
    pub(super) claim: Arc<Claim>,
    pub(super) made: Option<Arc<Made>>,
    pub(super) held: bool,
    /// Which of its removals this is.
    pub(super) removal: u64,
}

impl Place {
    /// Whether this is what it has.
    pub(super) fn has(&self, made: &Arc<Made>) -> bool {
        self.made.as_ref().is_some_and(|known| Arc::ptr_eq(known, made))
    }
}

impl Leaver {
    pub(super) fn entries(&self) -> Held<'_> {
        match &self.made {
            Some(made) => made.of(&self.claim),
            None => Held {
                keys: self.claim.keys(),
                token: self.claim.token(),
                session: 0,
                entries: &[],
            },
        }
    }
}

impl Made {
    pub(super) fn of<'a>(&'a self, claim: &'a Claim) -> Held<'a> {
        Held {
            keys: claim.keys(),
            token: claim.token(),
            session: self.session,
            entries: &self.entries,
        }
    }
}
