//! What a manager tells of locks that others have, and the one thing that can be done about them.

use super::{LockManager, deadlock};
use crate::{Error, HeldLock, Holder, LockInversion};

impl LockManager {
    /// Who has the lock now: a report, out of date as soon as it is made.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store could not be asked, [`Error::InvalidKey`].
    ///
    /// # Cancel safety
    ///
    /// Only looks; can be dropped at any time.
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

    /// Every lock that is held under this manager's prefix, by anybody, sorted by key: a report, out
    /// of date as soon as it is made.
    ///
    /// For operators: a store looks at all that it has to answer this. In Redis the user needs the
    /// right to `+scan`; a program that takes locks by `SET NX PX` under the same prefix is listed too.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store could not be asked, or cannot list its locks: locks of a session
    /// in PostgreSQL and MySQL (`lock=session`) have numbers there and no names.
    ///
    /// # Cancel safety
    ///
    /// Only looks; can be dropped at any time.
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
        let prefix = &self.shared.settings.prefix;
        self.shared.core.watchdog.check_here()?;
        let held = self.shared.core.store().held_locks(prefix).await;
        let mut held = held.map_err(|error| error.about(&[prefix, "*"].concat()))?;
        // Under no prefix, all that the store keeps is ours.
        held.retain(|lock| !deadlock::is_note(&[prefix, lock.key.as_str()].concat()));
        held.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(held)
    }

    /// Takes the lock from its holder, without asking, and hands it to the next in the queue; `true` if
    /// anybody had it.
    ///
    /// For operators, and for a holder that hangs: its body **goes on** until its next renewal tells it
    /// [`Lost`](Error::Lost), a third of the TTL later at most, or for as long as its process is
    /// stopped. Until then two run, and only a resource that checks [fencing
    /// tokens](crate::FencingToken) refuses the first. A shared lock is taken from all who share it; a
    /// holder of several keys loses all of them with the first.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store could not be asked (then it is unknown whether it was taken, and it
    /// does no harm to ask again), or cannot take the lock: it says what to do instead.
    /// [`Error::InvalidKey`].
    ///
    /// # Cancel safety
    ///
    /// If dropped, the lock was taken or it was not.
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
    /// // Who had it is notified, at the latest when it gives the lock back.
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

    /// What this manager has seen of locks that are taken in two orders, for a test to assert that
    /// there is none.
    ///
    /// Empty where [`lock_order`](crate::LockManagerBuilder::check_lock_order) is off, as it is in release builds
    /// by default.
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
