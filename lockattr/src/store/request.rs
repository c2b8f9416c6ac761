//! The requests that a store receives for a claim: acquire, renew, release.

use std::sync::Arc;
use std::time::Duration;

use super::{Claim, MAX_RECHECK};
use crate::FencingToken;
use crate::lock::century::at_most_a_century;

/// A request to acquire a lock.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use lockattr::store::{AcquireRequest, Claim, LockKey, Waiting};
///
/// let claim = Arc::new(Claim::new(LockKey::new("lock:", "product:42")?, ""));
/// let request = AcquireRequest::new(claim, Duration::from_secs(10));
/// assert_eq!(request.waiting, Waiting::Not);
/// assert_eq!(request.waiting(Waiting::Queued).waiting, Waiting::Queued);
/// # Ok::<(), lockattr::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AcquireRequest {
    /// The claim that will hold it.
    pub claim: Arc<Claim>,
    /// The length of the lease, from now.
    pub ttl: Duration,
    /// What the claim does while another claim holds the lock.
    pub waiting: Waiting,
    /// Raises the fencing counter to this number of microseconds since 2024, in place of the store's clock,
    /// unless the counter is already there. Stores that are asked together then give the same number. The
    /// store ignores a hint that is more than an hour ahead of both its clock and its counter.
    pub hint: Option<u64>,
    /// How often a waiting caller wants to ask again without a notification. Where other programs may free a
    /// lock without notifying, the store tells the head of its queue to ask again after this time. Other
    /// stores may ignore it.
    pub recheck_every: Duration,
    /// A claim of the same process that waited for the same shareable lock. As long as it holds the lock,
    /// this claim takes its place in the queue, before claims that came later.
    pub companion: Option<Arc<Claim>>,
}

impl AcquireRequest {
    /// Asks once for the lock of `claim`, for `ttl`.
    pub fn new(claim: Arc<Claim>, ttl: Duration) -> Self {
        Self {
            claim,
            ttl: at_most_a_century(ttl),
            waiting: Waiting::Not,
            hint: None,
            recheck_every: MAX_RECHECK,
            companion: None,
        }
    }

    /// Sets [`waiting`](field@AcquireRequest::waiting).
    #[must_use]
    pub fn waiting(mut self, waiting: Waiting) -> Self {
        self.waiting = waiting;
        self
    }

    /// Sets [`recheck_every`](field@AcquireRequest::recheck_every).
    #[must_use]
    pub fn recheck_every(mut self, recheck_every: Duration) -> Self {
        self.recheck_every = at_most_a_century(recheck_every);
        self
    }

    /// Sets [`companion`](field@AcquireRequest::companion).
    #[must_use]
    pub fn companion(mut self, companion: Option<Arc<Claim>>) -> Self {
        self.companion = companion;
        self
    }

    /// Sets [`hint`](field@AcquireRequest::hint).
    #[must_use]
    pub fn hint(mut self, hint: u64) -> Self {
        self.hint = Some(hint);
        self
    }
}

/// What a claim does while another claim holds its lock.
///
/// ```
/// use lockattr::store::Waiting;
///
/// assert_eq!(Waiting::default(), Waiting::Not);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// It does not wait.
    #[default]
    Not,
    /// It joins the store's wait queue. The store grants it the lock when it becomes the head, and notifies
    /// its subscriber.
    Queued,
    /// It joins the store's wait queue. When it becomes the head, the store notifies its subscriber to ask
    /// again. For claims that need locks of several independent stores at once.
    Told {
        /// Whether it was queued before. If it no longer is, it was notified, and comes before all queued
        /// claims.
        again: bool,
    },
}

/// A request to renew a lease.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RenewRequest {
    /// The claim that holds it.
    pub claim: Arc<Claim>,
    /// The length of the lease, from now.
    pub ttl: Duration,
    /// If the lease is renewed, every later acquisition of its locks gets a greater number than this one.
    pub fence: Option<FencingToken>,
}

impl RenewRequest {
    /// Renews the lease of `claim` for `ttl`.
    pub fn new(claim: Arc<Claim>, ttl: Duration) -> Self {
        Self { claim, ttl: at_most_a_century(ttl), fence: None }
    }

    /// Sets [`fence`](field@RenewRequest::fence) to a number that another store gave.
    #[must_use]
    pub fn fenced(mut self, fence: FencingToken) -> Self {
        self.fence = Some(fence);
        self
    }
}

/// A request to release a lock.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReleaseRequest {
    /// The claim that holds it.
    pub claim: Arc<Claim>,
    /// How long the lock stays held: the rest of `hold_at_least`. Zero releases it now.
    pub after: Duration,
    /// Releases without notifying any waiter, and keeps the claim's place in the queue, because the claim
    /// could not acquire the lock in enough other stores.
    pub quietly: bool,
}

impl ReleaseRequest {
    /// Releases the lock of `claim` now.
    pub fn new(claim: Arc<Claim>) -> Self {
        Self { claim, after: Duration::ZERO, quietly: false }
    }

    /// Keeps the lock held for this long; then its lease ends.
    #[must_use]
    pub fn after(mut self, after: Duration) -> Self {
        self.after = at_most_a_century(after);
        self
    }

    /// Sets [`quietly`](field@ReleaseRequest::quietly).
    #[must_use]
    pub fn without_notification(mut self) -> Self {
        self.quietly = true;
        self
    }
}
