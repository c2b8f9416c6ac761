//! What a process knows about a lock that its callers wait for.

use std::fmt;
use std::sync::{Arc, Weak};

use tokio::time::Instant;

use crate::hold::guard::ReaderGroup;
use crate::lock::options::ResolvedOptions;
use crate::lock::retry::Attempts;
use crate::store::{Claim, StoreError};
use crate::{Error, Holder};

/// What the head of a queue learned last. A waiter whose wait budget ends reports it, and needs no
/// request of its own.
#[derive(Clone)]
pub(crate) enum LastKnown {
    /// This process has the lock.
    Ours(Arc<Claim>),
    /// This process has the lock, and these readers hold it together.
    Readers(Arc<Claim>, Weak<ReaderGroup>),
    /// The store answered that another claim has it.
    HeldElsewhere(Option<Box<Holder>>),
    /// The store did not answer.
    Unanswered(StoreError),
}

impl fmt::Debug for LastKnown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(claim) => f.debug_tuple("Ours").field(claim).finish(),
            Self::Readers(claim, _) => f.debug_tuple("Readers").field(claim).finish(),
            Self::HeldElsewhere(holder) => f.debug_tuple("HeldElsewhere").field(holder).finish(),
            Self::Unanswered(error) => f.debug_tuple("Unanswered").field(error).finish(),
        }
    }
}

impl LastKnown {
    /// The claim by which this process has the lock.
    pub(crate) fn claim(&self) -> Option<&Arc<Claim>> {
        match self {
            Self::Ours(claim) | Self::Readers(claim, _) => Some(claim),
            Self::HeldElsewhere(_) | Self::Unanswered(_) => None,
        }
    }

    pub(crate) fn readers(&self) -> Option<Arc<ReaderGroup>> {
        match self {
            Self::Readers(_, readers) => readers.upgrade(),
            Self::Ours(_) | Self::HeldElsewhere(_) | Self::Unanswered(_) => None,
        }
    }

    /// Whether the key is done, so that no waiter gets the lock.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::HeldElsewhere(Some(holder)) if holder.done)
    }

    /// What a waiter reports when its wait budget ends now.
    pub(crate) fn error(self, key: &str, attempts: &Attempts) -> Error {
        let holder = match self {
            Self::Ours(claim) | Self::Readers(claim, _) => {
                Some(Box::new(Holder::from_value(claim.last_owner().value(), None)))
            }
            Self::HeldElsewhere(holder) => holder,
            Self::Unanswered(error) => return error.about(key),
        };
        contended(key, attempts, holder)
    }
}

/// Why a caller did not get a lock that is held.
pub(crate) fn contended(key: &str, attempts: &Attempts, holder: Option<Box<Holder>>) -> Error {
    let now = Instant::now();
    if let Some(holder) = holder.as_ref().filter(|holder| holder.done) {
        return Error::Done { key: key.to_owned(), until: holder.until() };
    }
    Error::Contended {
        key: key.to_owned(),
        attempts: attempts.made(now),
        waited: attempts.waited(now),
        holder,
    }
}

/// The wait queues of a manager: waiters state the options with which they want the lock, and
/// receive a guard.
pub(crate) type WaitQueues = crate::queue::WaitQueues<ResolvedOptions, crate::LockGuard, LastKnown>;

/// The head of a wait queue: it sends the requests to the store, or holds the lock.
pub(crate) type Head = crate::queue::Head<ResolvedOptions, crate::LockGuard, LastKnown>;

/// A waiter of this process that gets the lock next.
pub(crate) type SelectedWaiter =
    crate::queue::SelectedWaiter<ResolvedOptions, crate::LockGuard, LastKnown>;

/// A view of the head for readers that hold the lock together.
pub(crate) type SharedHead = crate::queue::SharedHead<ResolvedOptions, crate::LockGuard, LastKnown>;
