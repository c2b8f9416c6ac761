//! The manager: a store, defaults, and all calls of a program.

mod acquire;
#[cfg(feature = "postgres")]
mod acquire_in;
mod acquire_keys;
mod blocking;
pub(crate) mod body;
mod builder;
mod campaign;
#[cfg(feature = "registry")]
pub(crate) mod check;
mod contended;
mod deadlock;
pub(crate) mod default_manager;
pub(crate) mod inherit;
mod lead;
mod leader;
mod learned;
mod local_queue;
pub(crate) mod lock_order;
mod notes;
mod once;
mod open;
mod pending_acquire;
mod reenter;
mod report;
#[cfg(feature = "share")]
pub(crate) mod share;
mod wait_for_handoff;

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use crate::hold::last_known::WaitQueues;
pub use builder::LockManagerBuilder;
pub use leader::{Leader, LeaderWatch};

use crate::hold::core::Core;
use crate::lock::holder::Identity;
use crate::lock::key::LockKey;
use crate::lock::settings::Settings;
use crate::manager::body::{Granted, lease, nested_for_caller};
use crate::manager::campaign::Campaigns;
use crate::manager::learned::Refusals;
use crate::manager::lock_order::LockOrder;
use crate::observe::{self, Recorder};
use crate::queue::Limits;
use crate::store::{AnyStore, Subscriber};
#[cfg(feature = "testing")]
use crate::watchdog::Watchdog;
use crate::{Error, Lease, LockGuard, LockOptions};

/// Grants locks from one store; cheap to clone, and all clones are the same manager.
///
/// The URL chooses the store, so a move from a laptop to a fleet is one environment variable:
///
/// | URL | store |
/// |---|---|
/// | `memory://` | inside the process |
/// | `redis://[[user]:password@]host[:port][/database]` | one Redis or Valkey (feature `redis`, on by default) |
/// | `rediss://…[?ca=…][&client_cert=…&client_key=…]` | the same over TLS (feature `tls`) |
/// | `redis+unix:///path/to/socket[?user=…&pass=…&db=…]` | the same over a Unix socket |
/// | `redlock://[[user]:password@]host[:port],host,…[/database]` | a majority of independent servers: [`RedlockStore`](crate::store::RedlockStore) |
/// | `redis+sentinel://[[user]:password@]h1[:port],h2,…/master-name[?db=…&tls=true&sentinel_user=…&sentinel_pass=…]` | the server that these sentinels name as the master; user and password are that server's |
/// | `redis+cluster://[[user]:password@]host[:port],…[?tls=true]` | a cluster, of which any nodes are named (feature `redis`; with TLS, `tls`) |
/// | `postgres://[user[:password]@]host[:port][,…]/database[?lock=session]` | a PostgreSQL database (feature `postgres`): leases in a table, in the schema `public` or that of `?schema=…`, or locks of a session |
/// | `mysql://user[:password]@host[:port]/database[?lock=session]` | a MySQL or MariaDB database (feature `mysql`), in the same two forms |
/// | `zookeeper://[user:password@]host[:port],…[/chroot][?tls=true]` | a ZooKeeper ensemble (feature `zookeeper`; with TLS, `tls`) |
/// | `etcd://[user:password@]host[:port],…` | an etcd cluster (feature `etcd`; with TLS, `tls`) |
///
/// The query sets the manager's defaults, `redis://db/?prefix=shop:&ttl=5s&wait=3s`:
/// [`LockManagerBuilder`] lists all of them.
///
/// # After a fork
///
/// A manager belongs to the process that made it. In a process forked from that one (`fork(2)`
/// without an `exec`, as in pre-forking servers and daemons) it has no connections and no threads.
/// There, every call returns [`Error::InvalidOptions`], and a guard of the parent is lost and
/// releases nothing when it is dropped. Fork first, and connect in each process, on a runtime
/// started after the fork: tokio's runtimes do not survive one either. A default manager that was
/// installed before the fork can be [replaced](Self::install) after it. A `fork` by a direct system
/// call, without the C library, is not detected.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{LockManager, LockOptions};
///
/// let manager = LockManager::connect("memory://").await?;
/// let sold = manager.with_lock("product:42", LockOptions::new(), async |_lease| 1).await?;
/// assert_eq!(sold, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LockManager {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    recorder: Recorder,
    identity: Identity,
    core: Arc<Core>,
    subscriber: Arc<Subscriber>,
    /// The queues of callers that request several keys: one caller of each queue sends requests to
    /// the store. Separate from all other queues, because the joined names of two keys could equal
    /// the name of a third.
    several: Arc<WaitQueues>,
    refusals: Refusals,
    lock_order: LockOrder,
    campaigns: Campaigns,
    #[cfg(feature = "share")]
    results: share::Results,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Guards may outlive their manager; the watchdog keeps serving them and then ends.
        self.core.watchdog.close();
    }
}

impl LockManager {
    /// Connects to the store that `url` names, with the default settings.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store does not answer, [`Error::InvalidOptions`] if the URL is
    /// invalid. To start while the store is down, use [`LockManagerBuilder::build`].
    ///
    /// # Cancel safety
    ///
    /// Can be dropped at any time.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{Error, LockManager};
    ///
    /// let manager = LockManager::connect("memory://?ttl=5s&wait=3s").await?;
    ///
    /// let typo = LockManager::connect("memory://?tll=5s").await;
    /// assert!(matches!(typo, Err(Error::InvalidOptions(_))));
    /// # drop(manager);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(url: impl AsRef<str>) -> Result<Self, Error> {
        Self::builder().url(url).connect().await
    }

    /// [Connects](Self::connect) to the store that the environment variable `LOCKATTR_URL` names.
    ///
    /// # Errors
    ///
    /// As `connect`, and [`Error::InvalidOptions`] if the variable is not set.
    ///
    /// # Cancel safety
    ///
    /// Can be dropped at any time.
    ///
    /// ```no_run
    /// # async fn main_() -> Result<(), lockattr::Error> {
    /// let manager = lockattr::LockManager::from_env().await?;
    /// manager.install()?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn from_env() -> Result<Self, Error> {
        let url = std::env::var("LOCKATTR_URL").map_err(|_| {
            Error::InvalidOptions(
                "the environment variable `LOCKATTR_URL` is not set: set it to the store's URL, \
                 like `redis://127.0.0.1/` or `memory://`"
                    .into(),
            )
        })?;
        Self::connect(&url).await
    }

    /// Configures a manager step by step; see the example at [`LockManagerBuilder`].
    pub fn builder() -> LockManagerBuilder {
        LockManagerBuilder::default()
    }

    fn new(store: AnyStore, settings: Settings, recorder: Recorder) -> Self {
        let identity = Identity::new(settings.service.as_deref());
        let limits = Limits { count: settings.max_handoffs, time: settings.max_handoff_time };
        let core = Arc::new(Core::new(store, limits, settings.linger));
        let queues = Arc::downgrade(core.queues());
        let subscriber = Subscriber::new(move |name| {
            if let Some(queues) = queues.upgrade() {
                // Dropping a cached lock releases it.
                drop(queues.contended(name, Instant::now()));
            }
        });
        let loses = Arc::downgrade(&core.watchdog);
        let subscriber = subscriber.on_lost(move |token| {
            if let Some(watchdog) = loses.upgrade() {
                watchdog.lost(token);
            }
        });
        let unclaimed = Arc::downgrade(&core.watchdog);
        // The lock that was granted to a waiter which gave up is waiting to be released: retry now.
        let subscriber = Arc::new(subscriber.on_unclaimed(move |_token| {
            if let Some(watchdog) = unclaimed.upgrade() {
                watchdog.retry_now();
            }
        }));
        core.store().subscribe(&subscriber);
        observe::describe();
        let shared = Shared {
            settings,
            recorder,
            identity,
            core,
            subscriber,
            several: WaitQueues::new(limits),
            refusals: Refusals::default(),
            lock_order: LockOrder::default(),
            campaigns: Campaigns::default(),
            #[cfg(feature = "share")]
            results: share::Results::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Makes this the default manager of the process: the one that annotated functions use.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if one is already installed in this process.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// let manager = lockattr::LockManager::connect("memory://").await?;
    /// manager.install()?;
    /// assert!(manager.install().is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn install(&self) -> Result<(), Error> {
        default_manager::install(self.clone())?;
        self.shared.core.watchdog.telemetry().name("default");
        Ok(())
    }

    /// The default manager: that of the current [`scope`](Self::scope), or else the installed one.
    ///
    /// For a library or a module that wants to use the program's manager if it has one.
    ///
    /// # Errors
    ///
    /// [`Error::NoManager`] if there is none.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// assert!(LockManager::installed().is_err());
    /// LockManager::connect("memory://").await?.install()?;
    /// let guard = LockManager::installed()?.acquire("product:42", LockOptions::new()).await?;
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn installed() -> Result<Self, Error> {
        default_manager::default_manager().map(|chosen| chosen.clone())
    }

    /// The manager that is installed under `name`.
    ///
    /// # Errors
    ///
    /// [`Error::NoManagerNamed`] if there is none.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::LockManager;
    ///
    /// let error = LockManager::installed_as("billing").unwrap_err();
    /// assert!(error.to_string().contains("`billing`"));
    /// LockManager::connect("memory://").await?.install_as("billing")?;
    /// assert!(LockManager::installed_as("billing").is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn installed_as(name: impl AsRef<str>) -> Result<Self, Error> {
        default_manager::named_manager(name.as_ref())
    }

    /// Makes this the manager for `manager = "name"`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the name is taken.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, distributed_lock};
    ///
    /// #[distributed_lock(key = "invoice:<id>", manager = "billing")]
    /// async fn invoice(id: u64) -> Result<u64, lockattr::Error> {
    ///     Ok(id)
    /// }
    ///
    /// LockManager::connect("memory://").await?.install_as("billing")?;
    /// assert_eq!(invoice(7).await?, 7);
    /// # Ok(())
    /// # }
    /// ```
    pub fn install_as(&self, name: impl AsRef<str>) -> Result<(), Error> {
        default_manager::install_as(name.as_ref(), self.clone())?;
        self.shared.core.watchdog.telemetry().name(name.as_ref());
        Ok(())
    }

    /// Runs `future` with this manager as the default, whatever is installed: each test can have
    /// its own.
    ///
    /// Tasks that it spawns are outside, unless wrapped with [`inherit`](crate::inherit).
    ///
    /// # Cancel safety
    ///
    /// Dropping the returned future drops `future` and nothing else.
    ///
    /// ```
    /// use lockattr::{LockManager, distributed_lock};
    ///
    /// #[distributed_lock(key = "product:<id>")]
    /// async fn deduct(id: u64) -> Result<u64, lockattr::Error> {
    ///     Ok(id)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// let manager = LockManager::connect("memory://").await?;
    /// assert_eq!(manager.scope(deduct(42)).await?, 42);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        default_manager::scope(self.clone(), future)
    }

    /// Acquires the lock, waiting within the wait budget of `options`.
    ///
    /// Inside a hold on the same key by this call chain, it re-enters that hold without a request
    /// to the store.
    ///
    /// # Errors
    ///
    /// [`Error::Contended`] if another holder still had the lock after the last attempt, as the store answered to this call
    /// or to another one of this process; [`Error::Store`] if no such answer came in time, or the request could not be
    /// sent in time; [`Error::Done`] if the key is done; and [`Error::Lost`], [`Error::Reentered`], [`Error::ShutDown`],
    /// [`Error::InvalidKey`], [`Error::InvalidOptions`] as documented there.
    ///
    /// # Cancel safety
    ///
    /// If dropped, nothing stays locked: what the store may have granted is released.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use std::time::Duration;
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let options = LockOptions::new().ttl(Duration::from_secs(5)).wait(Duration::from_secs(2));
    /// let guard = manager.acquire("product:42", options).await?;
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn acquire(
        &self,
        key: impl AsRef<str>,
        options: LockOptions,
    ) -> Result<LockGuard, Error> {
        let options = options.resolve(&self.shared.settings)?;
        if let Some(nested) = self.enter_at_once(&options, key.as_ref()).await? {
            return nested_for_caller(nested);
        }
        let began = Instant::now();
        let guard = self.acquire_on(&options, self.key(key.as_ref())?).await?;
        Granted::new(guard, options, self.clone(), began).for_caller().await
    }

    /// Acquires the locks of all `keys` together: all or none. Equal keys count once.
    ///
    /// All of them have one lease, one fencing token and one guard. Two calls that name the same
    /// keys in different orders cannot deadlock. Keys that the call chain already holds are
    /// re-entered.
    ///
    /// While a call waits for some of its keys, it is in the wait queues of all of them. In its
    /// first second, other callers can take those of its keys that are free. After that second, a
    /// free key is reserved for it, so that a stream of callers for one key cannot delay it without
    /// end. The price: a call for `a` and `b` can keep others from a free `a` for as long as `b` is
    /// held. Combine keys that are held for similar times.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire); [`Error::InvalidKey`] if there are no keys, and
    /// [`Error::InvalidOptions`] if there are more than 1,000.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let both = manager.acquire_all(["account:7", "account:3"], LockOptions::new()).await?;
    /// assert!(both.keys().eq(["account:3", "account:7"]));
    /// assert!(manager.try_acquire("account:7", LockOptions::new()).await?.is_none());
    /// both.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn acquire_all(
        &self,
        keys: impl IntoIterator<Item = impl AsRef<str>>,
        options: LockOptions,
    ) -> Result<LockGuard, Error> {
        let began = Instant::now();
        let options = options.resolve(&self.shared.settings)?;
        let guard = self.acquire_all_on(&options, self.all_keys(keys)?).await?;
        Granted::new(guard, options, self.clone(), began).for_caller().await
    }

    /// Tries once to acquire the lock: `None` if another holder has it, or if the key is done.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), but never [`Error::Contended`] nor [`Error::Done`].
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let first = manager.try_acquire("nightly", LockOptions::new()).await?;
    /// let second = manager.try_acquire("nightly", LockOptions::new()).await?;
    /// assert!(first.is_some() && second.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_acquire(
        &self,
        key: impl AsRef<str>,
        options: LockOptions,
    ) -> Result<Option<LockGuard>, Error> {
        let began = Instant::now();
        let mut options = options.resolve(&self.shared.settings)?;
        options.wait_budget = options.wait_budget.once();
        match self.acquire_on(&options, self.key(key.as_ref())?).await {
            Ok(guard) => {
                let granted = Granted::new(guard, options, self.clone(), began);
                granted.for_caller().await.map(Some)
            }
            refused => if_free(refused),
        }
    }

    /// Runs `body` under the lock and releases it afterwards, however the body ends: the function
    /// behind the attribute.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`Error::Lost`] if the lease was lost while the body ran,
    /// unless [`OnLost::Ignore`](crate::OnLost::Ignore) is set. A release without an answer is a
    /// warning event and does not hide what the body returned.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the body is dropped at its current await point and the lock is released.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let mut stock = 10;
    /// let left = manager.with_lock("stock", LockOptions::new(), async |lease| {
    ///     stock -= 1;
    ///     println!("sold under token {}", lease.fencing_token());
    ///     stock
    /// });
    /// assert_eq!(left.await?, 9);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn with_lock<T>(
        &self,
        key: impl AsRef<str>,
        options: LockOptions,
        body: impl AsyncFnOnce(&Lease) -> T,
    ) -> Result<T, Error> {
        let options = options.resolve(&self.shared.settings)?;
        let begun = self.begin(options, key.as_ref());
        body::run(begun, async move { Ok(body(&lease()).await) }, Err).await
    }

    /// Stops granting, signals every body that runs under a lock of this manager, waits for the
    /// bodies to stop, and releases all locks.
    ///
    /// Waiters for a lock get [`Error::ShutDown`] at once. Then the call waits at most
    /// `shutdown_timeout` (10 s) for the bodies to stop and their locks to be released. It releases
    /// the locks of bodies that did not stop, and waits at most as long again for the store. All
    /// clones are shut down; a second call is harmless.
    ///
    /// # Cancel safety
    ///
    /// If dropped, nothing more is granted and the bodies are still signalled.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{Error, LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// manager.shutdown().await;
    /// let refused = manager.acquire("product:42", LockOptions::new()).await;
    /// assert!(matches!(refused, Err(Error::ShutDown { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shutdown(&self) {
        self.shared.core.watchdog.shut_down(self.shared.settings.shutdown_timeout).await;
    }

    /// Whether it was made in this process, and not in a parent that this one was forked from.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.shared.core.watchdog.is_of_this_process()
    }

    pub(crate) fn key(&self, key: &str) -> Result<LockKey, Error> {
        let key = LockKey::new(&self.shared.settings.prefix, key)?;
        match self.shared.core.store().refuses(&key) {
            Some(why) => Err(Error::InvalidKey(format!("`{key}` cannot be locked: {why}"))),
            None => Ok(key),
        }
    }

    #[cfg(feature = "testing")]
    pub(crate) fn watchdog(&self) -> &Arc<Watchdog> {
        &self.shared.core.watchdog
    }

    fn all_keys(
        &self,
        keys: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Vec<LockKey>, Error> {
        let keys: Vec<_> =
            keys.into_iter().map(|key| self.key(key.as_ref())).collect::<Result<_, _>>()?;
        match keys.len() {
            0..=MOST_KEYS => Ok(keys),
            count => Err(Error::InvalidOptions(format!(
                "one call locks at most {MOST_KEYS} keys, and this one names {count}: lock one \
                 key that represents them all, or make several calls"
            ))),
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.shared.settings
    }
}

/// The most keys of one call. A store locks them in one step, during which its other clients wait.
const MOST_KEYS: usize = 1_000;

/// The result of a single attempt: `None` if another holder has the lock.
fn if_free(outcome: Result<LockGuard, Error>) -> Result<Option<LockGuard>, Error> {
    match outcome {
        Ok(guard) => Ok(Some(guard)),
        Err(Error::Contended { .. } | Error::Done { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl fmt::Debug for LockManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockManager")
            .field("store", self.shared.core.store())
            .field("settings", &self.shared.settings)
            .finish_non_exhaustive()
    }
}
