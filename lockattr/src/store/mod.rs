//! The seam to where locks are kept, and its contract.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

pub use crate::lock::error::StoreError;
pub use crate::lock::key::LockKey;
pub use crate::lock::sharing::Sharing;
pub use crate::lock::token::OwnerToken;
use crate::{FencingToken, HeldLock, Holder};

// The public names of the engines, which lie above this room.
#[cfg(feature = "etcd")]
pub use crate::engines::etcd::EtcdStore;
#[cfg(fuzzing)]
#[doc(hidden)]
pub use crate::engines::fuzzing;
pub use crate::engines::memory::MemoryStore;
#[cfg(feature = "mysql")]
pub use crate::engines::mysql::MysqlStore;
#[cfg(feature = "postgres")]
pub use crate::engines::postgres::{PostgresSessionStore, PostgresStore, PostgresTransaction};
#[cfg(feature = "redis")]
pub use crate::engines::redis::RedisStore;
pub use crate::engines::redlock::RedlockStore;
#[cfg(feature = "zookeeper")]
pub use crate::engines::zookeeper::ZookeeperStore;

#[cfg(any(feature = "redis", feature = "mysql"))]
pub(crate) mod answers;
mod any;
mod claim;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod connection_slot;
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) mod held_lock_rows;
#[cfg(any(feature = "redis", feature = "zookeeper", feature = "etcd"))]
pub(crate) mod last_answer;
#[cfg(any(feature = "redis", feature = "postgres", feature = "mysql"))]
mod notifications;
pub(crate) mod queue;
mod request;
mod subscriber;
mod subscribers;
pub(crate) mod url;

pub use any::{AnyStore, ErasedStore};
pub use claim::Claim;
pub use subscriber::{Grant, Notification, Subscriber, Subscription};
pub(crate) use subscribers::Subscribers;

/// The old name of [`AcquireRequest`].
#[deprecated(note = "renamed to `AcquireRequest`")]
pub type Acquiring = AcquireRequest;
/// The old name of [`RenewRequest`].
#[deprecated(note = "renamed to `RenewRequest`")]
pub type Renewal = RenewRequest;
/// The old name of [`ReleaseRequest`].
#[deprecated(note = "renamed to `ReleaseRequest`")]
pub type Releasing = ReleaseRequest;
/// The old name of [`AcquireOutcome`].
#[deprecated(note = "renamed to `AcquireOutcome`")]
pub type Acquire = AcquireOutcome;
/// The old name of [`RenewOutcome`].
#[deprecated(note = "renamed to `RenewOutcome`")]
pub type Renew = RenewOutcome;
/// The old name of [`ReleaseOutcome`].
#[deprecated(note = "renamed to `ReleaseOutcome`")]
pub type Release = ReleaseOutcome;
/// The old name of [`Subscriber`].
#[deprecated(note = "renamed to `Subscriber`")]
pub type Inbox = Subscriber;
/// The old name of [`Subscription`].
#[deprecated(note = "renamed to `Subscription`")]
pub type Expected = Subscription;
/// The old name of [`Notification`].
#[deprecated(note = "renamed to `Notification`")]
pub type News = Notification;

#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) use connection_slot::connection_for;
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) use held_lock_rows::{HeldLockRows, holder_of};
#[cfg(any(feature = "redis", feature = "postgres", feature = "mysql"))]
pub(crate) use notifications::Notifications;
pub(crate) use queue::MAX_RECHECK;
pub use request::{AcquireRequest, ReleaseRequest, RenewRequest, Waiting};

/// Where locks are kept.
///
/// The contract, which one suite checks for every store:
///
/// * **An answer is certain, an error is not.** `Acquired`, `Held`, `Renewed`, `NotHeld`,
///   `Released` are facts. An `Err` says that nobody knows whether the command took effect, and
///   the caller acts accordingly: it undoes an acquire, and tries a renewal again.
/// * **Every method compares the owner token**, in one atomic step with what it changes.
/// * **An acquire is repeatable**: if the lock already carries this claim's token, because an
///   earlier answer was lost, it is granted again, under the same number or a greater one, and the
///   lease starts anew.
/// * **Fencing tokens only grow**, per key, across releases, expiries, and a store that lost its
///   memory.
/// * **A lease ends by itself** `ttl` after the store received the command, without a command.
/// * **No store retries or waits.** Patience belongs to the manager. A store that can keep a line
///   of its own lets a claim [stand in it](Waiting::Queued), grants the lock to the first in line as it becomes free, and tells that claim's [inbox](Self::listen).
/// * **The line is served in order**: neither a claim that only asks once nor one that could share the
///   lock with its holders overtakes. There are two exceptions. A claim for several keys may be overtaken
///   for a second, while another of its keys is taken. A claim [companion](field@AcquireRequest::companion) of a holder
///   of its process may enter in that one's place.
/// * **A release takes a claim out of the line too**: who stops waiting releases.
/// * **A loss that the store hears of by itself** is told to the claim's [inbox](Subscriber::lost).
/// * **Only what is held is listed**: no lines, no counters, no lease that has ended, and nothing that
///   is kept under other names than those asked for.
/// * **An eviction is a release by somebody else**: the next in line has the lock at once, under a greater
///   fencing token, and nothing that the evicted holder does later takes it from that one again.
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
    fn acquire(
        &self,
        asked: &AcquireRequest,
    ) -> impl Future<Output = Result<AcquireOutcome, StoreError>> + Send;

    /// Tells `inbox` what concerns the claims whose tokens begin with its number, for as long as
    /// its manager keeps it.
    fn subscribe(&self, _subscriber: &Arc<Subscriber>) {}

    /// Makes each lease run for its `ttl` from now, where the claim still holds its lock.
    fn renew(
        &self,
        renewals: &[RenewRequest],
    ) -> impl Future<Output = Vec<Result<RenewOutcome, StoreError>>> + Send;

    /// Gives each lock back, where the claim still holds it.
    fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> impl Future<Output = Vec<Result<ReleaseOutcome, StoreError>>> + Send;

    /// Who has the lock now.
    fn holder(
        &self,
        key: &LockKey,
    ) -> impl Future<Output = Result<Option<Holder>, StoreError>> + Send;

    /// All locks that are held under names that begin with `prefix`, in any order; their keys are what
    /// comes after it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store could not be asked about all of them, or cannot list locks: it then
    /// says so, as one does that has no method for it.
    fn held_locks(
        &self,
        _prefix: &str,
    ) -> impl Future<Output = Result<Vec<HeldLock>, StoreError>> + Send {
        let sentence = "this store cannot list its locks: ask who has one of them by its key";
        std::future::ready(Err(StoreError::new(sentence).not_sent()))
    }

    /// Takes a lock from all who have it, whoever they are, and hands it to the next in line. Whether
    /// anybody had it.
    ///
    /// The holder is not asked. It hears of it with its next renewal, or earlier, which says that the
    /// claim has its locks [no longer](RenewOutcome::NotHeld); one that has several keys loses all of them
    /// with the first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if nobody knows whether it was taken, or the store cannot take it: it then says
    /// what to do instead.
    fn force_release(
        &self,
        _key: &LockKey,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        let sentence = "this store cannot take a lock from its holder: end the holder's process";
        std::future::ready(Err(StoreError::new(sentence).not_sent()))
    }

    /// Whether the store answers at all; asked once when a manager connects.
    fn ping(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Whether the connection over which this key is asked about has brought an answer, to whatever
    /// question, since `since`. A question that gets none in time met a slow store then, and else one
    /// that is away. A store that cannot tell says no.
    fn answered_since(&self, _key: &LockKey, _since: Instant) -> bool {
        false
    }

    /// How long an entry for a claim of `ttl` may stay in the queue after its process last asked. For that long
    /// a manager goes on removing it, unless an answer says that it is gone.
    fn entry_lifetime(&self, ttl: Duration) -> Duration {
        queue::entry_lifetime(ttl)
    }

    /// Whether the store is reached over a network, so that the caller's runtime needs I/O. On a runtime
    /// without it a manager refuses every call.
    fn needs_io(&self) -> bool {
        false
    }

    /// Whether a claim may ask as the [companion](field@AcquireRequest::companion) of another claim of its process. Where it may not, each
    /// caller that shares a lock waits in the store by itself.
    fn supports_companions(&self) -> bool {
        false
    }

    /// Whether a claim that has a lock alone may share it from then on. Such a claim says so by its
    /// [mode](Claim::sharing) and its value, and its next [renewal](Self::renew) makes the lock a shared one:
    /// claims that wait for it and can share it are granted it. Until that renewal is executed, the store knows
    /// the claim by its token.
    ///
    /// Where a store cannot do this, a writer lets no readers in: each reader asks the store.
    fn supports_downgrade(&self) -> bool {
        false
    }

    /// Takes the next fencing number of this key: greater than that of every earlier acquisition, smaller than
    /// that of every later one. The manager hands a permit to the next caller of its process under this number.
    /// `None` if the store cannot give a number now; the manager then releases the permit to the store.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it does not answer. A number may be left out then.
    fn next_token(
        &self,
        _key: &LockKey,
    ) -> impl Future<Output = Result<Option<FencingToken>, StoreError>> + Send {
        std::future::ready(Ok(None))
    }

    /// The longest lease that it takes; a manager refuses options beyond it.
    fn longest_ttl(&self) -> Duration {
        Duration::MAX
    }

    /// Why this key cannot be locked here, if it cannot: a name that the store itself uses.
    fn refuses(&self, _key: &LockKey) -> Option<String> {
        None
    }

    /// Why this claim cannot be granted here, whoever else asks: what the store has no locks for.
    fn refuses_claim(&self, _claim: &Claim) -> Option<String> {
        None
    }
}

/// The answer to [`Store::acquire`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireOutcome {
    /// The lock is ours.
    Acquired {
        /// The number of this acquisition.
        fencing: FencingToken,
        /// Whether others stand in line for it.
        contended: bool,
    },
    /// Another claim has it, or comes first.
    Held {
        /// Who, where the store can say.
        holder: Option<Box<Holder>>,
        /// If the claim stands in line now: after how long to ask again if its inbox hears nothing,
        /// because the holder's lease has then ended by itself unless it was renewed.
        queued: Option<Duration>,
    },
}

/// The answer to one [`RenewRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewOutcome {
    /// The lease runs on.
    Renewed,
    /// The lock is free or another's: certainly lost.
    NotHeld,
}

/// The answer to one [`ReleaseRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// The lock was ours and is free.
    Released,
    /// The lock was free already or another's, and was left alone.
    NotHeld,
}
