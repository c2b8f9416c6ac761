//! The seam to where locks are kept, and its contract.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use crate::error::StoreError;
pub use crate::key::LockKey;
pub use crate::token::OwnerToken;
use crate::{FencingToken, Holder};

mod claim;
mod inbox;
mod inboxes;
mod memory;
#[cfg(feature = "redis")]
mod redis;
mod redlock;
mod request;

pub use claim::{Claim, Sharing};
pub(crate) use inbox::NET;
pub use inbox::{Expected, Grant, Inbox, News};
pub(crate) use inboxes::Inboxes;
pub use memory::MemoryStore;
#[cfg(feature = "redis")]
pub use redis::RedisStore;
pub use redlock::RedlockStore;
pub use request::{Acquiring, Releasing, Renewal, Waiting};

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
/// * **No store retries or waits.** Patience belongs to the manager. A store that can keep a line
///   of its own lets a claim [stand in it](Waiting::InLine), grants the lock to the first in line as it becomes free, and tells that claim's [inbox](Self::listen).
/// * **The line is served in order**, and nobody overtakes: neither does a claim that only asks
///   once, nor one that could share the lock with its holders. Only a claim for several keys is
///   overtaken, for a second, while one of the others is taken.
/// * **A release takes a claim out of the line too**: who stops waiting releases.
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
    /// Takes the lock if it is free or already this claim's; else the claim waits as it
    /// [says](Waiting). One that stands in line keeps its place when it asks again.
    ///
    /// A store without a line lets nobody wait.
    fn acquire<'a>(&'a self, asked: &'a Acquiring) -> StoreFuture<'a, Result<Acquire, StoreError>>;

    /// Tells `inbox` what concerns the claims whose tokens begin with its number, for as long as
    /// its manager keeps it.
    fn listen(&self, _inbox: &Arc<Inbox>) {}

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

    /// The longest lease that it takes; a manager refuses options beyond it.
    fn longest_ttl(&self) -> Duration {
        Duration::MAX
    }

    /// Why this key cannot be locked here, if it cannot: a name that the store itself uses.
    fn refuses(&self, _key: &LockKey) -> Option<String> {
        None
    }
}

/// The answer to [`Store::acquire`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquire {
    /// The lock is ours.
    Acquired {
        /// The number of this acquisition.
        fencing: FencingToken,
        /// Whether others stand in line for it.
        wanted: bool,
    },
    /// Another claim has it, or comes first.
    Held {
        /// Who, where the store can say.
        holder: Option<Box<Holder>>,
        /// If the claim stands in line now: after how long to ask again if its inbox hears nothing,
        /// because the holder's lease has then ended by itself unless it was renewed.
        in_line: Option<Duration>,
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
