//! The handle to a hold, for code that only inspects or extends it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::hold::chain::{self, Frame};
use crate::hold::thread_kind::may_wait;
use crate::lock::key::LockKey;
use crate::lock::options::check_ttl;
use crate::store::{RenewOutcome, RenewRequest};
use crate::{Error, FencingToken, LostReason};

/// A view of a hold: cheap to clone, and without ownership.
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

    /// The key, as the caller named it; the first of [several](Self::keys).
    pub fn key(&self) -> &str {
        self.frame.hold().claim().key().as_str()
    }

    /// All keys of this hold in order, if the call named several. Keys that the call chain held
    /// before and that were re-entered belong to the holds around it.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.frame.hold().claim().keys().iter().map(LockKey::as_str)
    }

    /// The fencing token of this acquisition, fixed when it was granted: the same in nested calls.
    pub fn fencing_token(&self) -> FencingToken {
        self.frame.hold().fencing()
    }

    /// How long the lease is valid without another renewal: the TTL, minus the time since *before*
    /// the request, minus a drift of 1 % and 2 ms. Zero once it has ended.
    pub fn remaining(&self) -> Duration {
        let now = Instant::now();
        match self.frame.ensure_held(now) {
            Ok(()) => self.frame.valid_until().saturating_duration_since(now),
            Err(_) => Duration::ZERO,
        }
    }

    /// Checks by the clock, without a request to the store, that the lease is still valid: call it before
    /// every step that cannot be undone.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] once the lease has ended, for whatever reason; it is never valid again.
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
    /// store can be reached. Outside of a tokio runtime with timers, it completes when the watchdog signals the end.
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

    /// Reports that the body makes progress, for [`progress_within`](crate::LockOptions::progress_within).
    /// Without that option it does nothing.
    ///
    /// It also counts for the other holds that the calling code is inside of: a body makes progress when the code that it
    /// calls does, also in the body of another lock.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use std::time::Duration;
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let options = LockOptions::new().progress_within(Duration::from_secs(30));
    /// manager.with_lock("import", options, async |lease| {
    ///     for _page in 0..3 {
    ///         lease.report_progress();
    ///     }
    /// }).await
    /// # }
    /// ```
    pub fn report_progress(&self) {
        let now = Instant::now();
        self.frame.hold().report_progress(now);
        chain::entries().for_each(|entry| entry.hold().report_progress(now));
    }

    /// The value of the lock in the store.
    pub(crate) fn value(&self) -> &str {
        self.frame.hold().claim().value()
    }

    /// The nesting depth of this call in the hold: 1 for the acquisition, 2 for a call inside it
    /// that re-entered, and so on.
    pub fn depth(&self) -> u32 {
        self.frame.depth
    }

    /// Makes the lease and every later renewal last for at least `ttl` from now.
    ///
    /// It never shortens the lease, and never exceeds `max_hold`.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the lease has ended, [`Error::Store`] if the store could not be reached
    /// (the lease then stays as it was), [`Error::InvalidOptions`] if `ttl` is not between 10 ms
    /// and 30 days, or is longer than the store allows.
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
        let requested_at = Instant::now();
        // In a fork too, which has no connection of its own.
        hold.ensure_held(requested_at)?;
        let renewed_ttl = hold.at_most(ttl, requested_at);
        hold.note_request(requested_at, renewed_ttl);
        let renewal = [RenewRequest::new(hold.claim().clone(), renewed_ttl)];
        match self.frame.core().store().renew(&renewal).await.pop() {
            Some(Ok(RenewOutcome::Renewed)) => {
                hold.lengthen(ttl);
                hold.renewed(requested_at, renewed_ttl);
                // The answer may arrive after the end: then the lease is lost all the same.
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
