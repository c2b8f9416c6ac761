//! The term of a leader: the lease under which it leads.

use std::fmt;
use std::ops::Deref;

use tokio::sync::watch;

use crate::{FencingToken, Lease};

/// The term of a leader: what the body of [`LockManager::lead`](crate::LockManager::lead) runs under.
///
/// It dereferences to the [`Lease`] of the term.
///
/// There is no `is_leader() -> bool`. Its answer would be out of date as soon as it is given, and the work
/// that relied on it would go on. The body is the term: it begins when this process leads, and is dropped
/// when it no longer does. What the body sends to another system under the term's number can be refused
/// there, once a later term has written.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{LockManager, LockOptions};
///
/// let manager = LockManager::connect("memory://").await?;
/// let number = manager.lead("scheduler", LockOptions::new(), async |term| term.number()).await?;
/// println!("led in term {number}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Term {
    lease: Lease,
    resigned: watch::Sender<bool>,
}

impl Term {
    pub(crate) fn new(lease: Lease) -> Self {
        Self { lease, resigned: watch::Sender::new(false) }
    }

    /// The number of the term: its fencing token, which is greater than that of every earlier term.
    pub fn number(&self) -> FencingToken {
        self.lease.fencing_token()
    }

    /// Ends the term: the body is dropped at its next await point, and the lock is released. What a body
    /// returns after it has resigned is dropped. The process then campaigns again, behind those that wait.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let terms = std::cell::Cell::new(0);
    /// manager.lead("scheduler", LockOptions::new(), async |term| {
    ///     terms.set(terms.get() + 1);
    ///     if terms.get() < 3 {
    ///         term.resign();
    ///     }
    /// }).await?;
    /// assert_eq!(terms.get(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn resign(&self) {
        self.resigned.send_replace(true);
    }

    /// Reports that the leader makes progress, for
    /// [`progress_within`](crate::LockOptions::progress_within). Without that option it does nothing.
    pub fn progress(&self) {
        self.lease.report_progress();
    }

    pub(crate) fn has_resigned(&self) -> bool {
        *self.resigned.borrow()
    }

    /// Completes when [`resign`](Self::resign) was called.
    pub(crate) async fn resigned(&self) {
        // The sender is in `self`, so this ends with the value alone.
        let mut resigned = self.resigned.subscribe();
        resigned.wait_for(|resigned| *resigned).await.ok();
    }
}

impl Deref for Term {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Term")
            .field("number", &self.number())
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
