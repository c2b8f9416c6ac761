//! The guard on threads that wait.

use super::LockGuard;
use crate::Error;
use crate::hold::scope::run_scoped;
use crate::hold::thread_kind::may_wait;

impl LockGuard {
    /// [Gives](Self::release) the lock back, and waits for the answer on this thread.
    ///
    /// Dropping gives it back as well. On a thread without a runtime the drop waits until the store has
    /// it, for a second at most, because the process may be about to end.
    ///
    /// # Errors
    ///
    /// As `release`, and [`Error::InvalidOptions`] on a thread that runs async tasks: the lock is given
    /// back in the background then.
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
        // What gives nothing back to the store needs no caller to wait.
        if self.is_nested() || self.is_left_to_parent() {
            return self.ensure_held();
        }
        may_wait(self.key())?;
        let (watchdog, key) = (self.frame().core().watchdog.clone(), self.key().to_owned());
        watchdog.block_on(&key, self.release())?
    }

    /// [Runs](Self::scope) `work` as part of this hold, on this thread; without the lock, as `scope`
    /// says, if the lease has ended before.
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
        run_scoped(self.place(), work)
    }
}
