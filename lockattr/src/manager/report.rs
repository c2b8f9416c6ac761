//! What a manager reports about locks of all holders, and the forced release.

use super::LockManager;
use super::notes::is_note;
use crate::{Error, HeldLock, HeldLocks, Holder, LockInversion};

impl LockManager {
    /// The current holder of the lock: a report, out of date as soon as it is made.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store could not be reached, or, in Redis, if another program has
    /// something else than a lock under this name (a hash, a list); [`Error::InvalidKey`].
    ///
    /// # Cancel safety
    ///
    /// Read-only; can be dropped at any time.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let guard = manager.acquire("product:42", LockOptions::new().function("main")).await?;
    /// let holder = manager.holder("product:42").await?.expect("we hold it");
    /// assert_eq!(holder.function.as_deref(), Some("main"));
    /// guard.release().await?;
    /// assert!(manager.holder("product:42").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn holder(&self, key: impl AsRef<str>) -> Result<Option<Holder>, Error> {
        let key = self.key(key.as_ref())?;
        self.shared.core.watchdog.check_here()?;
        let holder = self.shared.core.store().holder(&key).await;
        holder.map_err(|error| error.about(key.as_str()))
    }

    /// Every lock that is held under this manager's prefix, by any holder, sorted by key: a report,
    /// out of date as soon as it is made.
    ///
    /// For operators: the store scans all its data to answer this. In Redis the user needs the
    /// `+scan` permission; locks that another program takes by `SET NX PX` under the same prefix
    /// are listed too.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store could not be reached, or cannot list its locks: session locks
    /// in PostgreSQL and MySQL (`lock=session`) have numbers there and no names.
    ///
    /// # Cancel safety
    ///
    /// Read-only; can be dropped at any time.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let guard = manager.acquire_all(["b", "a"], LockOptions::new()).await?;
    /// let held = manager.held_locks().await?;
    /// assert!(held.iter().map(|lock| lock.key.as_str()).eq(["a", "b"]));
    /// guard.release().await?;
    /// assert!(manager.held_locks().await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn held_locks(&self) -> Result<Vec<HeldLock>, Error> {
        Ok(self.list_held_locks().await?.locks)
    }

    /// The [held locks](Self::held_locks), and how many names under the prefix were left out because
    /// no key can have them.
    ///
    /// # Errors
    ///
    /// As [`held_locks`](Self::held_locks).
    ///
    /// # Cancel safety
    ///
    /// Read-only; can be dropped at any time.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// let manager = lockattr::LockManager::connect("memory://").await?;
    /// let held = manager.list_held_locks().await?;
    /// assert!(held.locks.is_empty() && held.left_out == 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_held_locks(&self) -> Result<HeldLocks, Error> {
        let prefix = &self.shared.settings.prefix;
        self.shared.core.watchdog.check_here()?;
        let held = self.shared.core.store().list_held_locks(prefix).await;
        let mut held = held.map_err(|error| error.about(&[prefix, "*"].concat()))?;
        // With an empty prefix, all locks in the store belong to this manager.
        held.locks.retain(|lock| !is_note(&[prefix, lock.key.as_str()].concat()));
        held.locks.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(held)
    }

    /// Takes the lock from its holder without its consent, and hands it to the next waiter; `true`
    /// if the lock was held.
    ///
    /// For operators, if a holder hangs. The holder's body **keeps running** until its next renewal
    /// returns [`Lost`](Error::Lost), after a third of the TTL at most, or for as long as its
    /// process is stopped. Until then two bodies run, and only a resource that checks [fencing
    /// tokens](crate::FencingToken) refuses the first. A shared lock is taken from all its holders;
    /// a holder of several keys loses all of them with the first.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store could not be reached (then it is unknown whether the lock was
    /// taken, and a second call is harmless), or if it cannot take the lock: the error says what to
    /// do instead. [`Error::InvalidKey`].
    ///
    /// # Cancel safety
    ///
    /// If dropped, the lock may or may not have been taken.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{Error, LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let hangs = manager.acquire("nightly", LockOptions::new()).await?;
    /// assert!(manager.force_release("nightly").await?);
    /// assert!(manager.holder("nightly").await?.is_none());
    ///
    /// // The holder learns of it, at the latest when it releases the lock.
    /// assert!(matches!(hangs.release().await, Err(Error::Lost { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn force_release(&self, key: impl AsRef<str>) -> Result<bool, Error> {
        let key = self.key(key.as_ref())?;
        self.shared.core.watchdog.check_here()?;
        let evicted = self.shared.core.store().force_release(&key).await;
        evicted.map_err(|error| error.about(key.as_str()))
    }

    /// The lock-order inversions that this manager has seen, for a test to assert that there are
    /// none.
    ///
    /// Empty if [`check_lock_order`](crate::LockManagerBuilder::check_lock_order) is off, as it is
    /// by default in release builds.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// let manager = lockattr::LockManager::connect("memory://").await?;
    /// // … what the test does …
    /// assert!(manager.inversions().is_empty(), "{:?}", manager.inversions());
    /// # Ok(())
    /// # }
    /// ```
    pub fn inversions(&self) -> Vec<LockInversion> {
        self.shared.lock_order.inversions()
    }
}
