//! Calls that run once in a period: the key is done after a body that ended `Ok`.

use std::time::Duration;

use super::LockManager;
use crate::hold::chain;
use crate::manager::body::{self, lease};
use crate::{Error, Lease, LockOptions};

impl LockManager {
    /// Runs `body` under the lock, once in `period` in the whole fleet: after a body that ended `Ok`, the key
    /// is *done* until the period is over, also when this process has ended.
    ///
    /// The period counts from the acquisition. The store's clock measures it, so the clocks of the nodes do
    /// not matter. A body that returned `Err`, lost its lease, panicked or was dropped leaves the key free, and
    /// the next caller runs at once; so does one that took longer than the period. The attribute's form is
    /// [`once_per`](macro@crate::distributed_lock).
    ///
    /// The call returns when the store has confirmed that the key is done. If the store does not answer, the
    /// request is repeated until the lease has ended, or the period is over: then the body has ended `Ok`, and the
    /// key is open again.
    ///
    /// # Errors
    ///
    /// [`Error::Done`] if the key is done; `until` says for how long. [`Error::Contended`] if another caller
    /// still ran the body after the last attempt. [`Error::Lost`] if the lease was lost: another caller may run
    /// the body, or have run it. [`Error::Store`] if the store could not be reached, or did not confirm that the
    /// key is done. [`Error::InvalidOptions`] if the store cannot keep a key done (ZooKeeper, etcd, and
    /// `lock=session`), for options that do not fit, and inside a hold of the same key.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the body is dropped at its current await point and the lock is released. If dropped after
    /// the body, the key may be done.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use std::time::Duration;
    /// use lockattr::{Error, LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let day = Duration::from_secs(22 * 3600);
    /// let send = || manager.with_lock_once_per("invoices", day, LockOptions::new(), async |_lease| {
    ///     Ok::<u32, std::io::Error>(1200)
    /// });
    /// assert_eq!(send().await?.unwrap(), 1200);
    /// assert!(matches!(send().await, Err(Error::Done { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn with_lock_once_per<T, E>(
        &self,
        key: impl AsRef<str>,
        period: Duration,
        options: LockOptions,
        body: impl AsyncFnOnce(&Lease) -> Result<T, E>,
    ) -> Result<Result<T, E>, Error> {
        let settings = self.settings();
        let options = options.resolve(settings)?.once_per(period, settings)?;
        self.check_once(key.as_ref())?;
        let begun = self.begin(options, key.as_ref());
        let is_ok = |output: &Result<Result<T, E>, Error>| matches!(output, Ok(Ok(_)));
        body::run_once(begun, async move { Ok(body(&lease()).await) }, Err, is_ok).await
    }

    /// Checks that this store can keep a key done for `period`. Call it before work that ends with
    /// [`release_done`](crate::LockGuard::release_done), which has an example.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the store cannot keep a key done, or not for so long.
    pub fn check_once_per(&self, period: Duration) -> Result<(), Error> {
        let settings = self.settings();
        LockOptions::new().resolve(settings)?.once_per(period, settings)?;
        self.check_store_keeps_done()
    }

    pub(super) fn check_store_keeps_done(&self) -> Result<(), Error> {
        match self.shared.core.store().refuses_done() {
            Some(why) => Err(Error::InvalidOptions(why)),
            None => Ok(()),
        }
    }

    /// Refuses what could never be done, before the body runs.
    pub(crate) fn check_once(&self, key: &str) -> Result<(), Error> {
        self.check_store_keeps_done()?;
        if chain::find(&self.shared.core, key).is_some() {
            return Err(Error::InvalidOptions(format!(
                "this call chain holds `{key}`, and a body that runs `once_per` period needs the lock alone: \
                 call it outside of that hold"
            )));
        }
        Ok(())
    }
}
