//! The seam to where locks are kept, and its contract.

use std::fmt::{self, Debug};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use crate::error::StoreError;
pub use crate::key::LockKey;
pub use crate::token::OwnerToken;
use crate::{FencingToken, Holder};

mod memory;
#[cfg(feature = "redis")]
mod redis;

pub use memory::MemoryStore;
#[cfg(feature = "redis")]
pub use redis::RedisStore;

/// What a store's method returns: boxed, because a manager holds its store as `dyn Store`.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where locks are kept.
///
/// The contract, which one suite checks for every store:
///
/// * **An answer is certain, an error is not.** `Acquired`, `Held`, `Renewed`, `NotHeld`,
///   `Released` are facts. An `Err` says that nobody knows whether the command took effect, and
///   the caller acts accordingly: it undoes an acquire, and tries a renewal again.
/// * **Every method compares the owner token**, in one atomic step with what it changes.
/// * **An acquire is repeatable**: if the lock already carries this claim's token, because an
///   earlier answer was lost, it is granted again and the lease starts anew.
/// * **Fencing tokens only grow**, per key, across releases, expiries, and a store that lost its
///   memory.
/// * **A lease ends by itself** `ttl` after the store received the command, without a command.
/// * **No store retries or waits.** Patience belongs to the manager. (A store that can keep a
///   queue of its own will be asked through a method that has a default.)
/// * **Batches answer one by one**, in the order asked: one bad key never stops the others.
/// * **Commands that one task sends for one key take effect in that order.** A future that was
///   polled once has sent its command.
/// * **Dropping a future is allowed at any point**; its command may or may not take effect.
///
/// ```
/// use std::sync::Arc;
/// use lockattr::LockManager;
/// use lockattr::store::MemoryStore;
///
/// // Three managers over one store: three nodes of a fleet inside one process.
/// let store = Arc::new(MemoryStore::new());
/// let node = LockManager::builder().store(store.clone()).build()?;
/// # let _ = node;
/// # Ok::<(), lockattr::Error>(())
/// ```
pub trait Store: Debug + Send + Sync + 'static {
    /// Takes the lock for `ttl` if it is free or already this claim's.
    fn acquire<'a>(
        &'a self,
        claim: &'a Arc<Claim>,
        ttl: Duration,
    ) -> StoreFuture<'a, Result<Acquire, StoreError>>;

    /// Makes each lease run for its `ttl` from now, where the claim still holds its lock.
    fn renew<'a>(
        &'a self,
        renewals: &'a [Renewal],
    ) -> StoreFuture<'a, Vec<Result<Renew, StoreError>>>;

    /// Gives each lock back, where the claim still holds it.
    fn release<'a>(
        &'a self,
        releases: &'a [Releasing],
    ) -> StoreFuture<'a, Vec<Result<Release, StoreError>>>;

    /// Who has the lock now.
    fn holder<'a>(
        &'a self,
        key: &'a LockKey,
    ) -> StoreFuture<'a, Result<Option<Holder>, StoreError>>;

    /// Whether the store answers at all; asked once when a manager connects.
    fn ping(&self) -> StoreFuture<'_, Result<(), StoreError>>;

    /// Why this key cannot be locked here, if it cannot: a name that the store itself uses.
    fn refuses(&self, _key: &LockKey) -> Option<String> {
        None
    }
}

/// Who asks for what: one acquisition, from its first attempt to its release.
///
/// `Debug` shows the key only: who reads the value could release the lock.
///
/// ```
/// use lockattr::store::{Claim, LockKey};
///
/// let key = LockKey::new("lock:", "product:42")?;
/// let claim = Claim::new(key, "service=orders host=web-3");
/// assert!(claim.value().ends_with(" service=orders host=web-3"));
/// # Ok::<(), lockattr::Error>(())
/// ```
pub struct Claim {
    key: LockKey,
    token: OwnerToken,
    value: String,
}

impl Claim {
    /// A claim with an owner token of its own, and a label that says who asks.
    pub fn new(key: LockKey, label: &str) -> Self {
        let token = OwnerToken::random();
        Self { key, token, value: format!("{token} {label}") }
    }

    /// What is asked for.
    pub fn key(&self) -> &LockKey {
        &self.key
    }

    /// What proves the lock ours.
    pub fn token(&self) -> OwnerToken {
        self.token
    }

    /// What to store under the key: the token, then the holder's label, which
    /// [`Holder::from_value`] reads. The same for the whole life of the claim, so a store may
    /// compare it as a whole.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("key", &self.key).finish_non_exhaustive()
    }
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
}

impl Releasing {
    /// The lock of `claim`.
    pub fn new(claim: Arc<Claim>) -> Self {
        Self { claim }
    }
}

/// The answer to [`Store::acquire`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquire {
    /// The lock is ours.
    Acquired {
        /// The number of this acquisition.
        fencing: FencingToken,
    },
    /// Another claim has it.
    Held {
        /// Who, where the store can say.
        holder: Option<Box<Holder>>,
    },
}

/// The answer to one [`Renewal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renew {
    /// The lease runs on.
    Renewed,
    /// The lock is free or another's: certainly lost.
    NotHeld,
}

/// The answer to one [`Releasing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The lock was ours and is free.
    Released,
    /// The lock was free already or another's, and was left alone.
    NotHeld,
}
