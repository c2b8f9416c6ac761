//! The seam between managers and the systems that keep locks: the trait [`Store`], its requests and outcomes, and notifications.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

pub use crate::lock::credentials::Credentials;
pub use crate::lock::error::StoreError;
pub use crate::lock::key::LockKey;
pub use crate::lock::server_options::ServerOptions;
pub use crate::lock::sharing::Sharing;
pub use crate::lock::token::OwnerToken;
use crate::{FencingToken, HeldLock, HeldLocks, Holder, HolderId};

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
#[cfg(feature = "redis")]
pub use crate::engines::redlock::RedlockOptions;
pub use crate::engines::redlock::RedlockStore;
#[cfg(feature = "zookeeper")]
pub use crate::engines::zookeeper::ZookeeperStore;

/// The Redis client that [`RedisStore::from_client`] takes, in the version that this crate uses.
///
/// A program that depends on `redis` 1.x itself uses the same crate. A new major version of `redis`
/// here is a new major version of this crate.
#[cfg(feature = "redis")]
#[doc(no_inline)]
pub use redis;

mod any;
mod attempts;
mod claim;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod connection_for;
mod departure;
#[cfg(any(feature = "redis", feature = "postgres", feature = "mysql"))]
pub(crate) mod heartbeat;
#[cfg(any(feature = "redis", feature = "mysql"))]
pub(crate) mod held_flags;
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) mod held_lock_rows;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "zookeeper", feature = "etcd"))]
pub(crate) mod last_reply;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "zookeeper", feature = "etcd"))]
mod listed_name;
#[cfg(any(feature = "redis", feature = "postgres", feature = "mysql"))]
mod notifications;
pub(crate) mod queue;
mod queued_state;
mod request;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "zookeeper", feature = "etcd"))]
pub(crate) mod silence;
#[cfg(any(
    feature = "redis",
    feature = "postgres",
    feature = "mysql",
    feature = "zookeeper",
    feature = "etcd"
))]
pub(crate) mod slots;
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
pub(crate) use connection_for::connection_for;
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) use held_lock_rows::{HeldLockRows, holder_of};
#[cfg(any(feature = "postgres", feature = "mysql", feature = "zookeeper", feature = "etcd"))]
pub(crate) use listed_name::ListedName;
#[cfg(any(feature = "redis", feature = "postgres", feature = "mysql"))]
pub(crate) use notifications::Notifications;
pub(crate) use queue::MAX_RECHECK;
pub use request::{AcquireRequest, ReleaseRequest, RenewRequest, Waiting};

/// Keeps the locks.
///
/// One suite checks this contract for every store, and for yours: the crate
/// [`lockattr-contract`](https://docs.rs/lockattr-contract) makes a test of each promise. The guide has a chapter on
/// [writing a store](https://github.com/lockattr/lockattr/blob/main/docs/guide/18-writing-a-store.md).
///
/// * **An answer is certain, an error is not.** `Acquired`, `Held`, `Renewed`, `NotHeld` and `Released` are facts. An `Err` means
///   that the command may or may not have taken effect. The caller then undoes an acquire, and tries a renewal again.
/// * **Every method compares the owner token**, in one atomic step with what it changes.
/// * **An acquire can be repeated.** If the lock already carries this claim's token, because an earlier answer was lost, the store
///   grants it again, under the same number or a greater one, and the lease starts again.
/// * **Fencing tokens only grow**, per key, across releases, expiries, and a store that lost its memory.
/// * **A lease ends without a command**, `ttl` after the store received the request.
/// * **No store retries or waits.** The manager does. A store with wait queues lets a claim [wait in one](Waiting::Queued), grants the
///   lock to the first waiter when it becomes free, and notifies that claim's [subscriber](Self::subscribe).
/// * **A queue is served in order.** Neither a claim that only asks once nor one that could share the lock with its holders
///   overtakes. There are two exceptions. A claim for several keys may be overtaken for a second, while another of its keys is held.
///   The [companion](field@AcquireRequest::companion) of a holder of its process may enter in that holder's place.
/// * **A release also removes a claim from the queue**: a caller that stops waiting releases.
/// * **A loss that the store learns of** is reported to the claim's [subscriber](Subscriber::lost).
/// * **Only held locks are listed**: no queues, no counters, no lease that has ended, and nothing under other names than those asked
///   for.
/// * **A forced release takes a lock only from the holder that was seen**, and hands it to the next waiter at once, under a greater
///   fencing token. Nothing that the former holder does later takes it from that waiter.
/// * **A done key stays held** until its period is over. No renewal, release or acquire of the claim that marked it changes
///   that; only a forced release does.
/// * **Batches answer one by one**, in the order asked. One bad key never stops the others.
/// * **Commands that one task sends for one key take effect in that order.** A future that was polled once has sent its command.
/// * **A future may be dropped at any point**; its command may or may not take effect.
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
    /// Acquires the lock if it is free or already held by this claim. Else the claim waits as its request
    /// [says](Waiting). A queued claim keeps its place when it asks again.
    ///
    /// A store without wait queues queues no claim.
    fn acquire(
        &self,
        request: &AcquireRequest,
    ) -> impl Future<Output = Result<AcquireOutcome, StoreError>> + Send;

    /// Sends notifications for claims whose tokens begin with the subscriber's number to `subscriber`, for as long as its
    /// manager keeps it.
    fn subscribe(&self, _subscriber: &Arc<Subscriber>) {}

    /// Until this instant, the manager hands the lock of this claim to callers of its own process, or keeps it cached. From
    /// now on the store has to report [waiters](Subscriber::contended) elsewhere, and once any that may have come before.
    ///
    /// A store that always reports them need not do anything.
    fn watch_for_waiters(&self, _claim: &Claim, _until: Instant) {}

    /// Extends each lease to its `ttl` from now, where the claim still holds its lock.
    fn renew(
        &self,
        renewals: &[RenewRequest],
    ) -> impl Future<Output = Vec<Result<RenewOutcome, StoreError>>> + Send;

    /// Releases each lock, where the claim still holds it.
    fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> impl Future<Output = Vec<Result<ReleaseOutcome, StoreError>>> + Send;

    /// The holder of the lock, if it is held. Its [`id`](field@Holder::id) names the claim, as
    /// [`Holder::from_value`] sets it; [`force_release`](Self::force_release) is called with it.
    fn holder(
        &self,
        key: &LockKey,
    ) -> impl Future<Output = Result<Option<Holder>, StoreError>> + Send;

    /// All locks that are held under names that begin with `prefix`, in any order; their keys are what
    /// comes after it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store could not be asked about all of them, or cannot list locks. The default always
    /// fails.
    fn held_locks(
        &self,
        _prefix: &str,
    ) -> impl Future<Output = Result<Vec<HeldLock>, StoreError>> + Send {
        let sentence =
            "this store cannot list its locks: look up the holder of one lock by its key";
        std::future::ready(Err(StoreError::new(sentence).not_sent()))
    }

    /// The [held locks](Self::held_locks), and the number of names under the prefix that no key can have. The default
    /// counts none, which is right for a store that no other program can write to.
    ///
    /// # Errors
    ///
    /// As [`held_locks`](Self::held_locks).
    fn list_held_locks(
        &self,
        prefix: &str,
    ) -> impl Future<Output = Result<HeldLocks, StoreError>> + Send {
        async { Ok(self.held_locks(prefix).await?.into()) }
    }

    /// Takes a lock from the holder that has this [id](field@Holder::id), and hands it to the next waiter. Returns whether
    /// that holder had it. If the lock is free, or another claim holds it, nothing changes: the store compares and takes in
    /// one atomic step. Of several holders, the others keep it.
    ///
    /// The holder is not asked. It learns of the loss with its next renewal ([`NotHeld`](RenewOutcome::NotHeld)), or
    /// earlier. A claim for several keys loses all of them.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it is not known whether the lock was taken, or if the store cannot take it; the message then says
    /// what to do instead.
    fn force_release(
        &self,
        _key: &LockKey,
        _holder: &HolderId,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        let sentence = "this store cannot force the release of a lock: end the holder's process";
        std::future::ready(Err(StoreError::new(sentence).not_sent()))
    }

    /// Marks the claim's lock as *done*: the lock stays held for `lasts` from now, so that no other process repeats the
    /// work. Every later acquire is answered with [`Held`](AcquireOutcome::Held), and its holder is
    /// [`done`](field@Holder::done). The claim is exclusive and has one key.
    ///
    /// `Released` if the claim held the lock, or if the lock already has this claim's mark: a call whose answer was lost can be
    /// repeated, and the period does not start again. `NotHeld` otherwise, and then nothing changes.
    ///
    /// The store compares the owner token and marks the lock in one atomic step. Then:
    ///
    /// * A renewal or a release of the same claim answers `NotHeld`, and leaves the lock done. An acquire is refused.
    /// * The lock's value is that of the claim with the word ` done=1` at its end, which [`Holder::from_value`] reads. The claim's
    ///   token and value no longer match, so versions of this crate that know no marks leave the lock alone.
    /// * Each claim in the lock's queue is notified to [ask again](Notification::AskAgain) at once. It learns that the key is
    ///   done, and leaves. Its place is kept until then.
    /// * A [forced release](Self::force_release) by the id of the mark reopens the key; by that of the claim it does not. Fencing tokens go on growing.
    ///
    /// A manager asks only a store whose [`refuses_done`](Self::refuses_done) is `None`, and for no longer than its
    /// [`longest_ttl`](Self::longest_ttl).
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it is not known whether the lock was marked. The default always fails, and marks nothing.
    fn mark_done(
        &self,
        _claim: &Claim,
        _lasts: Duration,
    ) -> impl Future<Output = Result<ReleaseOutcome, StoreError>> + Send {
        let why = self.refuses_done().unwrap_or_else(|| CANNOT_BE_DONE.to_owned());
        std::future::ready(Err(StoreError::new(why).not_sent()))
    }

    /// Why the store cannot keep a key [done](Self::mark_done), if so. A store that can returns `None`, and a wrapper around
    /// another store forwards both calls.
    fn refuses_done(&self) -> Option<String> {
        Some(CANNOT_BE_DONE.to_owned())
    }

    /// Checks that the store answers. A manager calls it once, when it connects.
    fn ping(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// What kind of store it is, in one word, for the label `store` of metrics and the field `lockattr.store` of
    /// spans: the scheme of its URL, such as `redis`. A program has one value for each kind of store, so this is never an
    /// address.
    ///
    /// The default is the name of the type in this form: `TenantStore` is `tenant`. A store that wraps another returns
    /// the kind of that one, if that is what an operator looks for.
    fn kind(&self) -> Cow<'static, str> {
        kind_of(std::any::type_name::<Self>()).into()
    }

    /// Where the store is, without a password, for the error of a call whose wait ends without an answer. A wrapper around
    /// another store forwards the call.
    fn address(&self) -> Option<String> {
        None
    }

    /// Whether the store notes when each request to acquire [leaves](Claim::departs) this process. The time to answer
    /// begins then, and so does the lease. If the caller gives up before, nothing is undone, because a request whose
    /// future is dropped must not be sent.
    ///
    /// The requests of other stores count as sent when the manager asks.
    fn notes_departures(&self) -> bool {
        false
    }

    /// How long an entry for a claim of `ttl` may stay in the queue after its process last asked. For that long a manager
    /// keeps trying to remove it, unless an answer reports that it is gone.
    fn entry_lifetime(&self, ttl: Duration) -> Duration {
        queue::entry_lifetime(ttl)
    }

    /// Whether the store is reached over a network, so that the caller's runtime needs I/O. On a runtime without I/O a
    /// manager then refuses every call.
    fn needs_io(&self) -> bool {
        false
    }

    /// Whether a claim may ask as the [companion](field@AcquireRequest::companion) of another claim of its process. Where it
    /// may not, each caller that shares a lock has an entry of its own in the store's queue.
    fn supports_companions(&self) -> bool {
        false
    }

    /// Whether [`holder`](Self::holder) reports the value of the claim that holds the lock. Where it does not, a
    /// leader leaves no note with the number of its term: no process could read it. A wrapper around another store forwards
    /// the call.
    fn shows_values(&self) -> bool {
        true
    }

    /// Whether a lock's value may be 256 KiB long, and [`holder`](Self::holder) says how much of its lease remains.
    /// The manager then keeps the results that callers [share](crate::LockManager) as values of locks.
    fn keeps_long_values(&self) -> bool {
        false
    }

    /// Whether an exclusive claim can become a shared one. Such a claim changes its [mode](Claim::sharing) and its value, and
    /// its next [renewal](Self::renew) makes the lock a shared one; waiters that can share it are then granted it. Until
    /// that renewal is executed, the store knows the claim by its token.
    ///
    /// Where a store cannot do this, a writer admits no readers of its process: each reader asks the store.
    fn supports_downgrade(&self) -> bool {
        false
    }

    /// The next fencing number of this key: greater than that of every earlier acquisition, smaller than that of every later
    /// one. The manager hands a permit to the next caller of its process under this number. `None` if the store cannot give
    /// a number now; the manager then releases the permit to the store.
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

    /// The longest lease that the store accepts. A manager refuses options beyond it.
    fn longest_ttl(&self) -> Duration {
        Duration::MAX
    }

    /// Why this key cannot be locked here, if so: for example a name that the store itself uses.
    fn refuses(&self, _key: &LockKey) -> Option<String> {
        None
    }

    /// Why the store can never grant this claim, if so: it has no such kind of lock.
    ///
    /// By default a store locks one key exclusively, and refuses shared locks, permits and several keys. A store that has
    /// them returns `None`, and a wrapper around another store forwards the call.
    fn refuses_claim(&self, claim: &Claim) -> Option<String> {
        let plain = claim.sharing() == Sharing::Exclusive && claim.keys().len() == 1;
        (!plain).then(|| "this store has exclusive locks with one key only".to_owned())
    }
}

const CANNOT_BE_DONE: &str = "this store cannot keep a key done after its lock is released";

/// The answer to [`Store::acquire`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireOutcome {
    /// The claim holds the lock.
    Acquired {
        /// The number of this acquisition.
        fencing: FencingToken,
        /// Whether other claims wait for it.
        contended: bool,
    },
    /// Another claim holds it, or comes first.
    Held {
        /// The holder, where the store knows it.
        holder: Option<Box<Holder>>,
        /// If the claim is queued: after how long to ask again without a notification, because the holder's lease has then
        /// ended unless it was renewed.
        queued: Option<Duration>,
    },
}

/// The answer to one [`RenewRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewOutcome {
    /// The lease runs on.
    Renewed,
    /// The lock is free or held by another claim: the lease is certainly lost.
    NotHeld,
}

/// The answer to one [`ReleaseRequest`], and to [`Store::mark_done`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// The claim held the lock, and no longer does. The answer to [`Store::mark_done`]: the lock is done.
    Released,
    /// The lock was free or held by another claim, and was left alone.
    NotHeld,
}

/// The name of a type without its path, its parameters and the word `Store`, in snake case.
fn kind_of(type_name: &str) -> String {
    let name = type_name.split('<').next().unwrap_or_default();
    let name = name.rsplit("::").next().unwrap_or_default();
    let name = name.strip_suffix("Store").filter(|rest| !rest.is_empty()).unwrap_or(name);
    let mut kind = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !kind.is_empty() {
            kind.push('_');
        }
        kind.extend(letter.to_lowercase());
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::kind_of;

    #[test]
    fn the_kind_of_a_store_is_its_type_in_one_word() {
        for (type_name, kind) in [
            ("shop::locks::TenantStore", "tenant"),
            ("shop::Cached<lockattr::store::RedisStore>", "cached"),
            ("shop::TwoLevelStore<A, B>", "two_level"),
            ("shop::Store", "store"),
        ] {
            assert_eq!(kind_of(type_name), kind);
        }
    }
}
