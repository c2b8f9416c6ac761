//! What a store is asked for a claim: to take its lock, to keep it, to give it back.

use std::sync::Arc;
use std::time::Duration;

use super::Claim;

/// One lock to take.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use lockattr::store::{Acquiring, Claim, LockKey, Waiting};
///
/// let claim = Arc::new(Claim::new(LockKey::new("lock:", "product:42")?, ""));
/// let asked = Acquiring::new(claim, Duration::from_secs(10));
/// assert_eq!(asked.waiting, Waiting::Not);
/// assert_eq!(asked.in_line().waiting, Waiting::InLine);
/// # Ok::<(), lockattr::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Acquiring {
    /// Whose it will be.
    pub claim: Arc<Claim>,
    /// How long the lease shall run from now.
    pub ttl: Duration,
    /// What the claim does while the lock is another's.
    pub waiting: Waiting,
}

impl Acquiring {
    /// The lock of `claim`, for `ttl`, asked for once.
    pub fn new(claim: Arc<Claim>, ttl: Duration) -> Self {
        Self { claim, ttl, waiting: Waiting::Not }
    }

    /// The same, but standing in line for it.
    #[must_use]
    pub fn in_line(mut self) -> Self {
        self.waiting = Waiting::InLine;
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
    /// It stands in line, and is granted the lock when its turn comes: its inbox hears of it.
    InLine,
}

/// One lease to renew.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Renewal {
    /// Whose it is.
    pub claim: Arc<Claim>,
    /// How long it shall run from now.
    pub ttl: Duration,
}

impl Renewal {
    /// The lease of `claim`, for `ttl`.
    pub fn new(claim: Arc<Claim>, ttl: Duration) -> Self {
        Self { claim, ttl }
    }
}

/// One lock to give back.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Releasing {
    /// Whose it is.
    pub claim: Arc<Claim>,
    /// How long it stays taken still: `hold_at_least` is not over. Zero to free it now.
    pub after: Duration,
}

impl Releasing {
    /// The lock of `claim`, now.
    pub fn new(claim: Arc<Claim>) -> Self {
        Self { claim, after: Duration::ZERO }
    }

    /// The same, but it stays taken for so long still, and then ends by itself.
    #[must_use]
    pub fn after(mut self, after: Duration) -> Self {
        self.after = after;
        self
    }
}
