//! The blocking methods of a guard.

use super::LockGuard;
use crate::Error;
use crate::hold::scope::run_scoped;
use crate::hold::thread_kind::may_wait;

impl LockGuard {
    /// [Releases](Self::release) the lock, and waits for the answer on this thread.
    ///
    /// Dropping the guard releases the lock as well. On a thread without a runtime, the drop waits
    /// up to one second until the store has the release, because the process may be about to end.
    ///
    /// # Errors
    ///
    /// As `release`, and [`Error::InvalidOptions`] on a thread that runs async tasks: the lock is
    /// then released in the background.
    ///
    /// ```
    /// # fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect_blocking("memory://")?;
    /// manager.acquire_blocking("stock", LockOptions::new())?.release_blocking()?;
    /// assert!(manager.holder_blocking("stock")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn release_blocking(self) -> Result<(), Error> {
        // A release that sends nothing to the store does not block.
        if self.is_nested() || self.belongs_to_parent() {
            return self.ensure_held();
        }
        may_wait(self.key())?;
        let (watchdog, key) = (self.frame().core().watchdog.clone(), self.key().to_owned());
        watchdog.block_on(&key, self.release())?
    }

    /// [Runs](Self::scope) `work` as part of this hold, on this thread.
    ///
    /// If the lease has ended before, `work` runs without the lock, as described at `scope`.
    ///
    /// ```
    /// # fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect_blocking("memory://")?;
    /// let guard = manager.acquire_blocking("stock", LockOptions::new())?;
    /// let nested = guard.scope_blocking(|| manager.acquire_blocking("stock", LockOptions::new()))?;
    /// assert_eq!((nested.depth(), nested.fencing_token()), (2, guard.fencing_token()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn scope_blocking<T>(&self, work: impl FnOnce() -> T) -> T {
        run_scoped(self.position(), work)
    }
}
