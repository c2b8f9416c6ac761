//! What a manager reports about locks of all holders, and the forced release.

use super::LockManager;
use super::notes::is_note;
use crate::{Error, HeldLock, HeldLocks, Holder, HolderId, LockInversion};

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

    /// Takes the lock from `holder` without its consent, and hands it to the next waiter. `false` if the
    /// lock is free, or if another holder has it by now: then nothing changes, and
    /// [`holder`](Self::holder) tells which.
    ///
    /// `holder` is the [`Holder`] that the operator has seen, or its [id](field@Holder::id).
    ///
    /// For operators, if a holder hangs. The holder's body **keeps running** until its next renewal
    /// returns [`Lost`](Error::Lost), after a third of the TTL at most, or for as long as its
    /// process is stopped. Until then two bodies run, and only a resource that checks [fencing
    /// tokens](crate::FencingToken) refuses the first. Of several holders of a shared lock or of
    /// permits, the others keep theirs: ask for the next [`holder`](Self::holder), and repeat the call.
    /// A holder of several keys loses all of them with the first. A key that is done is reopened.
    ///
    /// What is compared is the claim in the store. Callers of one process that hand a lock off among
    /// themselves hold it by one claim, and a program that writes the same value each time
    /// has the same id each time. With session locks in PostgreSQL and MySQL (`lock=session`), it is the
    /// server's session: the call ends it if it still holds the lock.
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
    /// let seen = manager.holder("nightly").await?.expect("it is held");
    /// // … the operator finds that it hangs …
    /// assert!(manager.force_release("nightly", &seen).await?);
    /// assert!(manager.holder("nightly").await?.is_none());
    ///
    /// // The holder learns of it, at the latest when it releases the lock.
    /// assert!(matches!(hangs.release().await, Err(Error::Lost { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn force_release(
        &self,
        key: impl AsRef<str>,
        holder: impl AsRef<HolderId>,
    ) -> Result<bool, Error> {
        let key = self.key(key.as_ref())?;
        self.shared.core.watchdog.check_here()?;
        let evicted = self.shared.core.store().force_release(&key, holder.as_ref()).await;
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
