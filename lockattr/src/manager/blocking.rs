//! The blocking methods of the manager.

use tokio::time::Instant;
use tracing::instrument::{Instrument, WithSubscriber};

use super::{LockManager, LockManagerBuilder, if_free};
use crate::hold::chain::{self, ChainPosition};
use crate::hold::thread_kind::may_wait;
use crate::lock::key::{LockKey, named};
use crate::lock::options::ResolvedOptions;
use crate::manager::body::{self, Granted, Start, lease};
use crate::manager::default_manager::Scope;
use crate::{Error, Holder, Lease, LockGuard, LockOptions};

/// For programs, threads and functions that are not async.
///
/// A blocking call waits on its own thread. Requests to the store and renewals run on a thread that
/// the manager starts with the first such call; no tokio runtime is needed. Inside a runtime, these
/// calls belong in `tokio::task::spawn_blocking`: on a thread that runs async tasks they return
/// [`Error::InvalidOptions`], unless they re-enter a hold of their own call chain, which does not
/// block.
///
/// They use the machine's clock, even if a test has paused tokio's.
#[expect(clippy::needless_pass_by_value, reason = "as in the async methods")]
impl LockManager {
    /// [Connects](Self::connect) to the store that `url` names, and waits for its answer.
    ///
    /// # Errors
    ///
    /// As `connect`, and [`Error::InvalidOptions`] on a thread that runs async tasks.
    ///
    /// ```
    /// # fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, distributed_lock};
    ///
    /// #[distributed_lock(key = "product:<id>")]
    /// fn deduct(id: u64) -> Result<u64, lockattr::Error> {
    ///     Ok(id)
    /// }
    ///
    /// LockManager::connect_blocking("memory://")?.install()?;
    /// assert_eq!(deduct(42)?, 42);
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect_blocking(url: impl AsRef<str>) -> Result<Self, Error> {
        Self::builder().url(url).connect_blocking()
    }

    /// [Runs](Self::scope) `work` with this manager as the default, whatever is installed.
    ///
    /// ```
    /// # fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, distributed_lock};
    ///
    /// #[distributed_lock(key = "report")]
    /// fn report() -> Result<u32, lockattr::Error> {
    ///     Ok(7)
    /// }
    ///
    /// let manager = LockManager::connect_blocking("memory://")?;
    /// assert_eq!(manager.scope_blocking(report)?, 7);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scope_blocking<T>(&self, work: impl FnOnce() -> T) -> T {
        Scope::of(self.clone()).run(work)
    }

    /// [Acquires](Self::acquire) the lock, and waits for it on this thread.
    ///
    /// # Errors
    ///
    /// As `acquire`, and [`Error::InvalidOptions`] on a thread that runs async tasks.
    ///
    /// ```
    /// # fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect_blocking("memory://")?;
    /// let guard = manager.acquire_blocking("product:42", LockOptions::new())?;
    /// guard.release_blocking()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire_blocking(
        &self,
        key: impl AsRef<str>,
        options: LockOptions,
    ) -> Result<LockGuard, Error> {
        let began = Instant::now();
        let options = options.resolve(self.settings())?;
        let guard = self.acquire_on_blocking(&options, key.as_ref())?;
        Granted::new(guard, options, self.clone(), began).for_caller_blocking()
    }

    /// [Acquires](Self::acquire_all) the locks of all `keys` together, and waits on this thread.
    ///
    /// # Errors
    ///
    /// As `acquire_all`, and [`Error::InvalidOptions`] on a thread that runs async tasks.
    ///
    /// ```
    /// # fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect_blocking("memory://")?;
    /// let both = manager.acquire_all_blocking(["account:7", "account:3"], LockOptions::new())?;
    /// both.release_blocking()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire_all_blocking(
        &self,
        keys: impl IntoIterator<Item = impl AsRef<str>>,
        options: LockOptions,
    ) -> Result<LockGuard, Error> {
        let began = Instant::now();
        let options = options.resolve(self.settings())?;
        let guard = self.acquire_all_on_blocking(&options, self.all_keys(keys)?)?;
        Granted::new(guard, options, self.clone(), began).for_caller_blocking()
    }

    /// [Tries](Self::try_acquire) once to acquire the lock: `None` if another holder has it.
    ///
    /// # Errors
    ///
    /// As `try_acquire`, and [`Error::InvalidOptions`] on a thread that runs async tasks.
    ///
    /// ```
    /// # fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect_blocking("memory://")?;
    /// let first = manager.try_acquire_blocking("nightly", LockOptions::new())?;
    /// let second = manager.try_acquire_blocking("nightly", LockOptions::new())?;
    /// assert!(first.is_some() && second.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_acquire_blocking(
        &self,
        key: impl AsRef<str>,
        options: LockOptions,
    ) -> Result<Option<LockGuard>, Error> {
        let began = Instant::now();
        let mut options = options.resolve(self.settings())?;
        options.wait_budget = options.wait_budget.once();
        match self.acquire_on_blocking(&options, key.as_ref()) {
            Ok(guard) => {
                let granted = Granted::new(guard, options, self.clone(), began);
                granted.for_caller_blocking().map(Some)
            }
            refused => if_free(refused),
        }
    }

    /// [Runs](Self::with_lock) `body` under the lock, on this thread: the function behind the
    /// attribute on a plain function.
    ///
    /// A lost lease cannot stop the body. The call returns [`Error::Lost`] afterwards, unless
    /// [`OnLost::Ignore`](crate::OnLost::Ignore) is set. A long body should call
    /// [`ensure_held`](Lease::ensure_held) from time to time.
    ///
    /// # Errors
    ///
    /// As `with_lock`, and [`Error::InvalidOptions`] on a thread that runs async tasks, or for
    /// [`OnLost::Cancel`](crate::OnLost::Cancel).
    ///
    /// ```
    /// # fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect_blocking("memory://")?;
    /// let mut stock = 10;
    /// let left = manager.with_lock_blocking("stock", LockOptions::new(), |lease| {
    ///     stock -= 1;
    ///     println!("sold under token {}", lease.fencing_token());
    ///     stock
    /// });
    /// assert_eq!(left?, 9);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_lock_blocking<T>(
        &self,
        key: impl AsRef<str>,
        options: LockOptions,
        body: impl FnOnce(&Lease) -> T,
    ) -> Result<T, Error> {
        let began = Instant::now();
        let options = options.resolve_blocking(self.settings())?;
        let start = match self.enter_at_once_blocking(&options, key.as_ref())? {
            Some(guard) => Start::Nested(guard, options.on_lost),
            None => {
                let guard = self.acquire_on_blocking(&options, key.as_ref())?;
                Granted::new(guard, options, self.clone(), began).into()
            }
        };
        body::run_blocking(start, || body(&lease()), |_| false)
    }

    /// [Reports](Self::holder) the current holder of the lock.
    ///
    /// # Errors
    ///
    /// As `holder`, and [`Error::InvalidOptions`] on a thread that runs async tasks.
    ///
    /// ```
    /// # fn main() -> Result<(), lockattr::Error> {
    /// let manager = lockattr::LockManager::connect_blocking("memory://")?;
    /// assert!(manager.holder_blocking("product:42")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn holder_blocking(&self, key: impl AsRef<str>) -> Result<Option<Holder>, Error> {
        let (manager, key) = (self.clone(), key.as_ref().to_owned());
        self.wait_for(&key.clone(), async move { manager.holder(key).await })
    }

    /// [Stops](Self::shutdown) granting, signals every body, waits for the bodies to stop, and
    /// releases all locks. Call it last, so that background releases finish before the process
    /// ends.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] on a thread that runs async tasks, and [`Error::Store`] if no
    /// thread could be started; then nothing was done.
    ///
    /// ```
    /// # fn main() -> Result<(), lockattr::Error> {
    /// let manager = lockattr::LockManager::connect_blocking("memory://")?;
    /// manager.shutdown_blocking()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn shutdown_blocking(&self) -> Result<(), Error> {
        let manager = self.clone();
        self.wait_for("", async move {
            manager.shutdown().await;
            Ok(())
        })
    }

    pub(crate) fn acquire_on_blocking(
        &self,
        options: &ResolvedOptions,
        key: &str,
    ) -> Result<LockGuard, Error> {
        if let Some(outer) = chain::find(&self.shared.core, key)
            && let Some(guard) = self.try_enter_again(options, &outer, key)?
        {
            return Ok(guard);
        }
        let (manager, options, lock) = (self.clone(), options.clone(), self.key(key)?);
        self.wait_for(key, async move { manager.acquire_on(&options, lock).await })
    }

    pub(crate) fn acquire_all_on_blocking(
        &self,
        options: &ResolvedOptions,
        keys: Vec<LockKey>,
    ) -> Result<LockGuard, Error> {
        if let Some(guard) = self.try_enter_all_again(options, &keys)? {
            return Ok(guard);
        }
        let (manager, options) = (self.clone(), options.clone());
        self.wait_for(&named(&keys), async move { manager.acquire_all_on(&options, keys).await })
    }

    /// Runs `request`, a request to the store about `key`, and waits for it.
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        key: &str,
        request: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        may_wait(key)?;
        // Its span is inside the caller's, although it is made on another thread.
        let request =
            ChainPosition::here().run_future(request).in_current_span().with_current_subscriber();
        self.shared.core.watchdog.block_on(key, request)?
    }
}

impl LockManagerBuilder {
    /// Makes the manager and [checks](Self::connect) that the store answers, on this thread.
    ///
    /// # Errors
    ///
    /// As `connect`, and [`Error::InvalidOptions`] on a thread that runs async tasks.
    ///
    /// ```
    /// # fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::LockManager;
    ///
    /// let manager = LockManager::builder().url("memory://").service("orders").connect_blocking()?;
    /// # drop(manager);
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect_blocking(self) -> Result<LockManager, Error> {
        let manager = self.build()?;
        let store = manager.shared.core.store().clone();
        manager.wait_for("", async move { store.ping().await.map_err(|error| error.about("")) })?;
        Ok(manager)
    }
}
