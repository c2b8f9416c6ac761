//! What a process knows of a lock for which its callers wait.

use std::sync::Arc;

use tokio::time::Instant;

use crate::options::Terms;
use crate::retry::Attempts;
use crate::store::{Claim, StoreError};
use crate::{Error, Holder};

/// What the asker of a queue learned last. A waiter whose wait budget ends reports it, and need not ask
/// the store once more.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// This process has the lock.
    Ours(Arc<Claim>),
    /// The store answered that another claim has it.
    Taken(Option<Box<Holder>>),
    /// The store did not answer.
    Unanswered(StoreError),
}

impl Known {
    /// What a waiter reports whose wait budget ends now.
    pub(super) fn error(self, key: &str, attempts: &Attempts) -> Error {
        let holder = match self {
            Self::Ours(claim) => Some(Box::new(Holder::from_value(claim.value(), None))),
            Self::Taken(holder) => holder,
            Self::Unanswered(error) => return error.about(key),
        };
        contended(key, attempts, holder)
    }
}

pub(super) fn contended(key: &str, attempts: &Attempts, holder: Option<Box<Holder>>) -> Error {
    let now = Instant::now();
    Error::Contended {
        key: key.to_owned(),
        attempts: attempts.made(now),
        waited: attempts.waited(now),
        holder,
    }
}

/// The wait queues of a manager: waiters say on which terms they want the lock, and are handed a guard.
pub(crate) type Lines = crate::line::Lines<Terms, crate::LockGuard, Known>;

/// The head of one of them: it asks the store, or has the lock.
pub(crate) type Ahead = crate::line::Ahead<Terms, crate::LockGuard, Known>;
