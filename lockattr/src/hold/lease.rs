//! The handle to a hold: everything that only looks or extends.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::hold::chain::Frame;
use crate::hold::thread_kind::may_wait;
use crate::lock::key::LockKey;
use crate::lock::options::check_ttl;
use crate::store::{RenewOutcome, RenewRequest};
use crate::{Error, FencingToken, LostReason};

/// A claim with an end, as its holder sees it: cheap to clone, and no hold by itself.
///
/// [`LockGuard`](crate::LockGuard) dereferences to it, the attribute's `lease = name` binds one,
/// and [`current`](crate::current) finds the innermost.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{LockManager, LockOptions};
///
/// let manager = LockManager::connect("memory://").await?;
/// let done = manager.with_lock("report", LockOptions::new(), async |lease| {
///     for _page in 0..3 {
///         lease.ensure_held()?;
///     }
///     Ok::<_, lockattr::Error>(lease.fencing_token())
/// });
/// println!("written with token {}", done.await??);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Lease {
    frame: Arc<Frame>,
}

impl Lease {
    pub(crate) fn new(frame: Arc<Frame>) -> Self {
        Self { frame }
    }

    pub(crate) fn frame(&self) -> &Arc<Frame> {
        &self.frame
    }

    /// What is held, as the caller named it; the first of [several](Self::keys).
    pub fn key(&self) -> &str {
        self.frame.hold().claim().key().as_str()
    }

    /// All keys of this hold, in order, where several were asked for at once. Those that the call
    /// chain held before, and that were entered again, belong to the holds around it.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.frame.hold().claim().keys().iter().map(LockKey::as_str)
    }

    /// The number of this acquisition, captured when it was granted: the same in nested calls.
    pub fn fencing_token(&self) -> FencingToken {
        self.frame.hold().fencing()
    }

    /// How long the lease may still be relied on if no caller renews it: TTL, less the time since
    /// *before* it was asked for, less a drift of 1 % and 2 ms. Zero once it has ended.
    pub fn remaining(&self) -> Duration {
        let now = Instant::now();
        match self.frame.ensure_held(now) {
            Ok(()) => self.frame.valid_until().saturating_duration_since(now),
            Err(_) => Duration::ZERO,
        }
    }

    /// Asks the clock, not the store, whether the lease may still be relied on: call it before
    /// every step that cannot be undone.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] once the lease has ended, for whatever reason; it never comes back.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let guard = manager.acquire("mailing", LockOptions::new()).await?;
    /// for address in ["ada@example.org", "bob@example.org"] {
    ///     guard.ensure_held()?;
    ///     println!("mail to {address}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn ensure_held(&self) -> Result<(), Error> {
        self.frame.ensure_held(Instant::now())
    }

    /// Completes when the lease has ended: lost, or released by its guard.
    ///
    /// A loss is signalled no later than the lease's conservative deadline, whether or not the
    /// store can be reached.
    ///
    /// # Cancel safety
    ///
    /// Can be dropped and called again at any time.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use std::time::Duration;
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let fixed = LockOptions::new().ttl(Duration::from_secs(1)).renew(false);
    /// let guard = manager.acquire("report", fixed).await?;
    ///
    /// guard.lost().await; // a second later
    /// assert!(guard.ensure_held().is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lost(&self) {
        self.frame.clone().ended().await;
    }

    /// How deep this call is nested in the hold: 1 for the acquisition, 2 for a call inside it
    /// that entered again, and so on.
    pub fn depth(&self) -> u32 {
        self.frame.depth
    }

    /// Makes the lease run for at least `ttl` from now, and every later renewal as well.
    ///
    /// It never shortens, and never goes past `max_hold`.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the lease has ended, [`Error::Store`] if the store could not be asked
    /// (the lease then stands as it was), [`Error::InvalidOptions`] if `ttl` is not 10 ms to 30
    /// days, or longer than the store takes.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the lease may or may not have been extended; it is never shortened.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use std::time::Duration;
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let guard = manager.acquire("import", LockOptions::new()).await?;
    /// guard.extend(Duration::from_secs(60)).await?;
    /// assert!(guard.remaining() > Duration::from_secs(50));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        let hold = self.frame.hold();
        check_ttl(ttl, self.frame.core().store().longest_ttl())?;
        let asked = Instant::now();
        // In a fork too, which has no connection of its own to ask by.
        hold.ensure_held(asked)?;
        let renewed_ttl = hold.at_most(ttl, asked);
        hold.asking_for(asked, renewed_ttl);
        let renewal = [RenewRequest::new(hold.claim().clone(), renewed_ttl)];
        match self.frame.core().store().renew(&renewal).await.pop() {
            Some(Ok(RenewOutcome::Renewed)) => {
                hold.lengthen(ttl);
                hold.renewed(asked, renewed_ttl);
                // The answer may have come after the end: then it is lost all the same.
                hold.ensure_held(Instant::now())
            }
            Some(Err(error)) => Err(error.about(&hold.claim().named())),
            Some(Ok(RenewOutcome::NotHeld)) | None => {
                hold.lose(LostReason::Taken);
                Err(hold.lost(LostReason::Taken))
            }
        }
    }

    /// [Extends](Self::extend) the lease, and waits for the answer on this thread.
    ///
    /// # Errors
    ///
    /// As `extend`, and [`Error::InvalidOptions`] on a thread that runs async tasks.
    ///
    /// ```
    /// # fn main() -> Result<(), lockattr::Error> {
    /// use std::time::Duration;
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect_blocking("memory://")?;
    /// let guard = manager.acquire_blocking("import", LockOptions::new())?;
    /// guard.extend_blocking(Duration::from_secs(60))?;
    /// assert!(guard.remaining() > Duration::from_secs(50));
    /// # Ok(())
    /// # }
    /// ```
    pub fn extend_blocking(&self, ttl: Duration) -> Result<(), Error> {
        may_wait(self.key())?;
        let lease = self.clone();
        self.frame.core().watchdog.block_on(self.key(), async move { lease.extend(ttl).await })?
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("key", &self.key())
            .field("fencing_token", &self.fencing_token())
            .field("depth", &self.depth())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
