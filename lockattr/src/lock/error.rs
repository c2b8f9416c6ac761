//! Errors, named by what the caller does next.

mod cause;
mod clauses;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::Holder;
use crate::lock::holder::rounded;
use crate::lock::printable::printable;
use cause::Cause;
pub(crate) use cause::causes;
use clauses::{Circle, Named, Unreachable};

/// Why a lock was not acquired, or was lost.
///
/// | variant | what to do |
/// |---|---|
/// | [`Contended`](Self::Contended) | try later; `holder` names the holder |
/// | [`Done`](Self::Done) | nothing: the work of this period is done |
/// | [`Deadlock`](Self::Deadlock) | release what is held, and try again; acquire locks in one order |
/// | [`Lost`](Self::Lost) | stop, and check what the work has done so far |
/// | [`Store`](Self::Store) | check the store |
/// | [`ShutDown`](Self::ShutDown) | nothing: the process is on its way out |
/// | [`Reentered`](Self::Reentered), [`NoManager`](Self::NoManager), [`NoManagerNamed`](Self::NoManagerNamed), [`InvalidKey`](Self::InvalidKey), [`InvalidOptions`](Self::InvalidOptions) | fix the program |
///
/// An outage is never reported as contention, nor contention as an outage. No variant carries a
/// password. The text of an error is safe to log: what is not [printable](crate::printable) in a key
/// is replaced there. [`key`](Self::key) and the fields have the key as it is.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use std::time::Duration;
/// use lockattr::{Error, LockManager, LockOptions};
///
/// let manager = LockManager::connect("memory://").await?;
/// let _held = manager.acquire("product:42", LockOptions::new()).await?;
///
/// let patience = LockOptions::new().wait(Duration::from_millis(50));
/// match manager.acquire("product:42", patience).await {
///     Err(Error::Contended { key, holder: Some(holder), .. }) => {
///         println!("{key} is held by {holder}: try later");
///     }
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another holder had the lock at the last attempt: try later.
    #[error("`{}` is held by {}; gave up after {attempts} attempt{} in {}",
        printable(key), Named(holder.as_deref()), if *attempts == 1 { "" } else { "s" }, rounded(*waited))]
    Contended {
        /// The key or keys of the call.
        key: String,
        /// How many attempts were made.
        attempts: u32,
        /// How long the call waited.
        waited: Duration,
        /// The holder, if the store knows it.
        holder: Option<Box<Holder>>,
    },
    /// The key is done: a body ended `Ok` in this period, and none begins until the period is over. See
    /// [`with_lock_once_per`](crate::LockManager::with_lock_once_per).
    #[error(
        "`{}` is done until {}; `lockattr release --force` reopens it",
        printable(key), humantime::format_rfc3339_seconds(*until)
    )]
    Done {
        /// The key of the call.
        key: String,
        /// When the period is over, by the clock of this process: a report.
        until: SystemTime,
    },
    /// The call waits in a cycle: in the end, for a lock that its own call chain holds. Only with
    /// [`detect_deadlocks`](crate::LockManagerBuilder::detect_deadlocks), and for one call of the
    /// cycle: the others go on when this one has released what it holds.
    #[error("{}", Circle { circle, holds })]
    Deadlock {
        /// The key or keys of the call.
        key: String,
        /// The locks of the cycle, from `key` on: each with its holder, which waits for the next.
        circle: Vec<(String, Holder)>,
        /// The lock that the last of them waits for, and this call chain holds.
        holds: String,
    },
    /// The lease ended while the work went on: stop, and check what it has done. If the lease ended
    /// before the work began, the work has not begun.
    #[error(
        "the lease on `{}` was lost: {reason}; stop, and check what the work has done",
        printable(key)
    )]
    Lost {
        /// The key or keys of the lock.
        key: String,
        /// How it ended.
        reason: LostReason,
    },
    /// The store could not be reached, so the holder is unknown: check the store.
    #[error("{}: {source}", Unreachable(key))]
    Store {
        /// The key or keys of the call; empty if the store was contacted for no key, as by
        /// [`connect`](crate::LockManager::connect).
        key: String,
        /// What the store, or the connection to it, answered.
        source: StoreError,
    },
    /// A nested call requested a key that its own call chain holds, with `reentrant = false`.
    #[error(
        "`{}` is already held by this call chain, and `reentrant = false` forbids entering it \
        again",
        printable(key)
    )]
    Reentered {
        /// The key or keys of the lock.
        key: String,
    },
    /// The manager is shutting down and grants nothing more.
    #[error("`{}` was not acquired: the lock manager is shut down", printable(key))]
    ShutDown {
        /// The key or keys of the call.
        key: String,
    },
    /// No default manager is installed. Call [`LockManager::install`](crate::LockManager::install) at
    /// start-up, or run inside [`LockManager::scope`](crate::LockManager::scope).
    #[error(
        "no default lock manager is installed: call `LockManager::install` at start-up, or run \
         inside `LockManager::scope`"
    )]
    NoManager,
    /// No manager is installed under the name in `manager = "…"`. Call
    /// [`LockManager::install_as`](crate::LockManager::install_as) at start-up.
    #[error(
        "no lock manager is installed under the name `{0}`: call \
         `LockManager::install_as(\"{0}\")` at start-up",
        printable(name)
    )]
    NoManagerNamed {
        /// The name.
        name: String,
    },
    /// The key cannot be locked; the text says why.
    #[error("{}", printable(.0))]
    InvalidKey(String),
    /// The options contradict each other or a limit; the text says what to write instead.
    #[error("{}", printable(.0))]
    InvalidOptions(String),
}

/// How a lease ended before its holder released it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use std::time::Duration;
/// use lockattr::{Error, LockManager, LockOptions, LostReason};
///
/// let manager = LockManager::connect("memory://").await?;
/// let hour = Duration::from_secs(3600);
/// let guard = manager.acquire("nightly", LockOptions::new().max_hold(hour)).await?;
/// guard.lost().await; // renewed for an hour, and then no more
/// let Err(Error::Lost { reason, .. }) = guard.ensure_held() else { panic!() };
/// assert_eq!(reason, LostReason::MaxHold);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LostReason {
    /// It expired: no renewal succeeded in time, the process was suspended, or `renew` was
    /// off.
    Expired,
    /// The store reports another holder or none: the lock was deleted, flushed, or taken by force.
    Taken,
    /// It was held as long as `max_hold` allows.
    MaxHold,
    /// The manager is shutting down.
    ShutDown,
    /// The outer hold of this nested one was released.
    Released,
    /// This process was forked from the holder, and a fork does not inherit locks.
    Forked,
    /// The body reported no progress for as long as `progress_within` allows.
    Silent,
}

impl Error {
    /// The key of the call or of the lock, without the manager's prefix; several keys are separated by
    /// `, `. `None` if the error is about no key.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let _held = manager.acquire("product:42", LockOptions::new()).await?;
    /// let error = manager.acquire("product:42", LockOptions::new().retry(0)).await.unwrap_err();
    /// assert_eq!(error.key(), Some("product:42"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Contended { key, .. }
            | Self::Done { key, .. }
            | Self::Deadlock { key, .. }
            | Self::Lost { key, .. }
            | Self::Store { key, .. }
            | Self::Reentered { key }
            | Self::ShutDown { key } => Some(key.as_str()).filter(|key| !key.is_empty()),
            Self::NoManager
            | Self::NoManagerNamed { .. }
            | Self::InvalidKey(_)
            | Self::InvalidOptions(_) => None,
        }
    }

    /// Whether another holder had the lock: a later call may succeed.
    ///
    /// A [`Deadlock`](Self::Deadlock) is not counted: a later call succeeds only if the caller releases
    /// what it holds.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let _held = manager.acquire("product:42", LockOptions::new()).await?;
    /// let error = manager.acquire("product:42", LockOptions::new().retry(0)).await.unwrap_err();
    /// assert!(error.is_contended() && !error.is_lost());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_contended(&self) -> bool {
        matches!(self, Self::Contended { .. })
    }

    /// Whether the key is done: its work needs no second run in this period.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use lockattr::Error;
    ///
    /// let error = Error::Done { key: "invoices".into(), until: SystemTime::now() };
    /// assert!(error.is_done() && !error.is_contended());
    /// ```
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. })
    }

    /// Whether the lease ended while the work went on: check what the work has done.
    ///
    /// ```
    /// use lockattr::{Error, LostReason};
    ///
    /// let error = Error::Lost { key: "product:42".into(), reason: LostReason::Expired };
    /// assert!(error.is_lost() && !error.is_contended());
    /// ```
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// Adds the waiting time of a call that began at `began`, and may have waited before.
    pub(crate) fn waited_since(self, began: Instant) -> Self {
        match self {
            Self::Contended { key, attempts, holder, .. } => {
                Self::Contended { key, attempts, waited: began.elapsed(), holder }
            }
            other => other,
        }
    }
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "it expired before it was renewed",
            Self::Taken => "the store no longer has this process as its holder",
            Self::MaxHold => "it was held as long as `max_hold` allows",
            Self::ShutDown => "the lock manager is shutting down",
            Self::Released => "the hold around it was released",
            Self::Forked => "this process was forked from the holder",
            Self::Silent => "the body reported no progress within `progress_within`",
        })
    }
}

/// The error of a store that could not answer. The command may or may not have taken effect.
///
/// ```
/// use lockattr::store::StoreError;
///
/// let error = StoreError::new("no answer within 1s");
/// assert_eq!(error.to_string(), "no answer within 1s");
/// ```
#[derive(Clone)]
pub struct StoreError {
    message: String,
    not_sent: bool,
    invalid: bool,
    source: Option<Arc<Cause>>,
}

impl StoreError {
    /// An error with a message of one clause, which must not contain a password.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), not_sent: false, invalid: false, source: None }
    }

    /// Marks that the command certainly did not reach the store, so that there is nothing to undo.
    #[must_use]
    pub fn not_sent(mut self) -> Self {
        self.not_sent = true;
        self
    }

    /// Marks that no retry will succeed, because the URL is wrong.
    #[must_use]
    pub(crate) fn invalid(mut self) -> Self {
        self.invalid = true;
        self
    }

    pub(crate) fn is_not_sent(&self) -> bool {
        self.not_sent
    }

    /// Reverts [`not_sent`](Self::not_sent): an earlier command did reach the store, so there is
    /// something to undo.
    #[cfg(any(feature = "postgres", feature = "mysql", feature = "zookeeper", feature = "etcd"))]
    #[must_use]
    pub(crate) fn sent(mut self) -> Self {
        self.not_sent = false;
        self
    }

    /// Keeps the driver's own error. Its text, and that of each of its causes, is the [source](StdError::source)
    /// of this error, [printable](crate::printable).
    #[must_use]
    pub fn with_source(self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.with_boxed_source(Box::new(source))
    }

    /// Returns the error of a driver that was [kept](Self::with_source), or a cause of it, if it has this
    /// type.
    ///
    /// ```
    /// use lockattr::store::StoreError;
    ///
    /// let reset = std::io::Error::other("reset by peer");
    /// let error = StoreError::new("no answer from db:5432").with_source(reset);
    /// assert!(error.downcast_ref::<std::io::Error>().is_some());
    /// ```
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        causes(self).find_map(|error| error.downcast_ref())
    }

    #[must_use]
    pub(crate) fn with_boxed_source(mut self, source: Box<dyn StdError + Send + Sync>) -> Self {
        self.source = Some(Arc::new(Cause::new(source)));
        self
    }

    /// As the public error about `key`.
    pub(crate) fn about(self, key: &str) -> Error {
        match self.invalid {
            true => Error::InvalidOptions(self.message),
            false => Error::Store { key: key.into(), source: self },
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It may quote a key, or what a server says about it.
        f.write_str(&printable(&self.message))
    }
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreError({:?})", self.message)
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|cause| &cause.shown as _)
    }
}
