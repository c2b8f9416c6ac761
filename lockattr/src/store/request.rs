//! What a store is asked for a claim: to take its lock, to keep it, to give it back.

use std::sync::Arc;
use std::time::Duration;

use super::{Claim, MAX_RECHECK};
use crate::FencingToken;

/// One lock to take.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use lockattr::store::{AcquireRequest, Claim, LockKey, Waiting};
///
/// let claim = Arc::new(Claim::new(LockKey::new("lock:", "product:42")?, ""));
/// let asked = AcquireRequest::new(claim, Duration::from_secs(10));
/// assert_eq!(asked.waiting, Waiting::Not);
/// assert_eq!(asked.waiting(Waiting::Queued).waiting, Waiting::Queued);
/// # Ok::<(), lockattr::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AcquireRequest {
    /// Whose it will be.
    pub claim: Arc<Claim>,
    /// How long the lease shall run from now.
    pub ttl: Duration,
    /// What the claim does while the lock is another's.
    pub waiting: Waiting,
    /// What the fencing counter becomes instead of the store's clock, in microseconds since 2024,
    /// unless it is that far already: stores that are asked together give the same number then. A hint
    /// that is more than an hour ahead of the store's clock and of its counter does not count.
    pub hint: Option<u64>,
    /// How often the caller wants to look while it waits, if it hears nothing: a store in which other
    /// programs may free a lock without a word tells a claim at the head of its queue to ask again then.
    /// A store whose locks nothing else can free may ignore it.
    pub recheck_every: Duration,
    /// A claim of the same process, with which it waited for a lock that both can share: as long as that one
    /// holds the lock, this one is in its place, before claims that came after it.
    pub companion: Option<Arc<Claim>>,
}

impl AcquireRequest {
    /// The lock of `claim`, for `ttl`, asked for once.
    pub fn new(claim: Arc<Claim>, ttl: Duration) -> Self {
        Self {
            claim,
            ttl,
            waiting: Waiting::Not,
            hint: None,
            recheck_every: MAX_RECHECK,
            companion: None,
        }
    }

    /// The same, but waiting for it.
    #[must_use]
    pub fn waiting(mut self, waiting: Waiting) -> Self {
        self.waiting = waiting;
        self
    }

    /// The same, but looking so often while it waits.
    #[must_use]
    pub fn recheck_every(mut self, recheck_every: Duration) -> Self {
        self.recheck_every = recheck_every;
        self
    }

    /// The same, in the place of a claim of its process that it waited with.
    #[must_use]
    pub fn companion(mut self, companion: Option<Arc<Claim>>) -> Self {
        self.companion = companion;
        self
    }

    /// The same, but counted by this clock.
    #[must_use]
    pub fn hint(mut self, hint: u64) -> Self {
        self.hint = Some(hint);
        self
    }
}

/// What a claim does while its lock is another's.
///
/// ```
/// use lockattr::store::Waiting;
///
/// assert_eq!(Waiting::default(), Waiting::Not);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// Nothing: it only asked.
    #[default]
    Not,
    /// It waits in the queue, and is granted the lock when its turn comes: its subscriber learns of it.
    Queued,
    /// It waits in the queue, and when its turn comes its subscriber is asked to ask again: what has to hold
    /// several locks at once, in stores that know nothing of each other, comes and takes them.
    Told {
        /// Whether it stood there before: where it does not any more, it has been told, and comes
        /// before all who stand there.
        again: bool,
    },
}

/// One lease to renew.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RenewRequest {
    /// Whose it is.
    pub claim: Arc<Claim>,
    /// How long it shall run from now.
    pub ttl: Duration,
    /// If the lease runs on, no later acquisition of its locks gets this number or a smaller one.
    pub fence: Option<FencingToken>,
}

impl RenewRequest {
    /// The lease of `claim`, for `ttl`.
    pub fn new(claim: Arc<Claim>, ttl: Duration) -> Self {
        Self { claim, ttl, fence: None }
    }

    /// The same, and its number is `fence`: another store gave it.
    #[must_use]
    pub fn fenced(mut self, fence: FencingToken) -> Self {
        self.fence = Some(fence);
        self
    }
}

/// One lock to give back.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReleaseRequest {
    /// Whose it is.
    pub claim: Arc<Claim>,
    /// How long it stays taken still: `hold_at_least` is not over. Zero to free it now.
    pub after: Duration,
    /// Whether no process is notified, and the claim keeps its place in the queue: the lock failed,
    /// because other stores refused it.
    pub quietly: bool,
}

impl ReleaseRequest {
    /// The lock of `claim`, now.
    pub fn new(claim: Arc<Claim>) -> Self {
        Self { claim, after: Duration::ZERO, quietly: false }
    }

    /// The same, but it stays taken for so long still, and then ends by itself.
    #[must_use]
    pub fn after(mut self, after: Duration) -> Self {
        self.after = after;
        self
    }

    /// The same, but no process learns of it.
    #[must_use]
    pub fn without_notification(mut self) -> Self {
        self.quietly = true;
        self
    }
}
