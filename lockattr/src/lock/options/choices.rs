//! Options with a fixed set of values.

#[cfg(doc)]
use crate::Error;

/// Which holders a lock excludes: a read/write lock has many shared holders or one exclusive one.
///
/// ```
/// use lockattr::{LockOptions, Mode};
///
/// // Reports read side by side; a change waits until they are done, and they until it is.
/// let report = LockOptions::new().mode(Mode::Shared);
/// let change = LockOptions::new().mode(Mode::Exclusive);
/// # drop((report, change));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Excludes all other holders.
    #[default]
    Exclusive,
    /// Excludes exclusive holders only: other shared holders may hold the lock too.
    Shared,
}

/// What happens to the body when its lease is lost.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use std::time::Duration;
/// use lockattr::{Error, LockManager, LockOptions, OnLost};
/// use tokio::time::sleep;
///
/// let manager = LockManager::connect("memory://").await?;
/// let short = LockOptions::new().ttl(Duration::from_secs(1)).renew(false);
/// let body = async |_: &lockattr::Lease| {
///     sleep(Duration::from_secs(2)).await;
///     "done"
/// };
///
/// let cancelled = manager.with_lock("k", short.clone(), body).await;
/// assert!(matches!(cancelled, Err(Error::Lost { .. })));
/// let finished = manager.with_lock("k", short.on_lost(OnLost::Ignore), body).await;
/// assert_eq!(finished?, "done");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnLost {
    /// Drop it at its next await point and return [`Error::Lost`].
    #[default]
    Cancel,
    /// Let it finish, then return [`Error::Lost`].
    Error,
    /// Let it finish and return its value, with a warning event.
    Ignore,
}

/// Whether the caller waits for the answer to its release.
///
/// ```
/// use lockattr::{LockOptions, Release};
///
/// // One round trip a call instead of two.
/// let quick = LockOptions::new().release(Release::Background);
/// # drop(quick);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Release {
    /// Return when the store has answered.
    #[default]
    Await,
    /// Return as soon as the release is sent: one round trip less. The manager completes it, and
    /// later commands for the key keep their order.
    ///
    /// Before the call returns, the task of the store's client that writes to the connection has
    /// run. On a single-threaded runtime the command is then sent, unless the connection accepts no
    /// more data. If all threads of a larger runtime are busy, sending may happen a moment later.
    /// So a process that is about to exit calls [`shutdown`](crate::LockManager::shutdown) first.
    Background,
}
