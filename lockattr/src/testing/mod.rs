//! For tests of code that locks: a manager with a scripted store, and a record of all acquisitions.
//! No server, and no waiting.
//!
//! [`TestLocks`] is a store in memory behind a network that fails on command, and a manager over
//! it. A test [runs](TestLocks::scope) its code under that manager. It can then
//!
//! * act as other nodes of the fleet: [hold](TestLocks::hold) a key as another client,
//!   [steal](TestLocks::steal) it, let its lease [expire](TestLocks::expire), start
//!   [another process](TestLocks::another_process);
//! * act as the network: [cut](TestLocks::cut) the store off, let it [hang](TestLocks::hang),
//!   [lose answers](TestLocks::lose_answers), [fail](TestLocks::fail_next) a number of requests;
//! * inspect: the [waiting callers](TestLocks::waiting), the [holder](TestLocks::holder), all
//!   [acquisitions](TestLocks::acquisitions), their [order](TestLocks::timeline), and whether
//!   [anything is left](TestLocks::assert_nothing_left).
//!
//! # Time
//!
//! All time is tokio's, so a test under `#[tokio::test(start_paused = true)]` takes no real time:
//! when every task waits, the clock jumps to the next timer. A wait budget of ten seconds, a TTL of
//! an hour, or an outage of a day end at once, in the right order. To let time pass, sleep, so that
//! the renewals on the way are sent (`tokio::time::advance` would jump over them). Under a running
//! clock everything works too, in real time. `start_paused` needs tokio's feature `test-util`,
//! which the feature `testing` of this crate enables.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//!
//! use lockattr::testing::{Outcome, TestLocks};
//! use lockattr::{Error, distributed_lock};
//!
//! #[distributed_lock(key = "product:<id>", ttl = "10s", wait = "3s")]
//! async fn deduct(id: u64) -> Result<(), Error> {
//!     tokio::time::sleep(Duration::from_secs(60)).await;
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let locks = TestLocks::new();
//!
//! // Another node has it, and releases it in time.
//! locks.hold("product:42").release_after(Duration::from_secs(2));
//! assert!(locks.scope(deduct(42)).await.is_ok());
//!
//! // Another node has it, and keeps it.
//! let other = locks.hold("product:42");
//! let refused = locks.scope(deduct(42)).await;
//! assert!(matches!(refused, Err(Error::Contended { .. })));
//! other.release();
//!
//! // The lease is lost while the body runs: it is cancelled.
//! let stolen = async {
//!     locks.until_held("product:42").await;
//!     locks.steal("product:42")
//! };
//! let (lost, thief) = tokio::join!(locks.scope(deduct(42)), stolen);
//! assert!(matches!(lost, Err(Error::Lost { .. })));
//! thief.release();
//!
//! let outcomes: Vec<_> = locks.acquisitions().iter().map(|each| each.outcome).collect();
//! assert!(matches!(outcomes[..], [Outcome::Released, Outcome::Contended, Outcome::Lost(_)]));
//! locks.assert_nothing_left().await;
//! # }
//! ```

mod acquisition;
mod inspect;
mod network;
pub(crate) mod observer;
mod outage;
mod record;
mod script;
mod store;

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

pub use acquisition::{Acquisition, Outcome};
pub use script::Other;

use crate::manager::default_manager;
use crate::observe::Recorder;
use crate::platform::sync::Mutex;
use crate::store::LockKey;
use crate::watchdog::Watchdog;
use crate::{Error, LockManager, LockManagerBuilder};
use observer::ServiceObserver;
use record::Record;
use store::ScriptedStore;

/// The locks of one test: a scripted store, a manager over it, and a record of all acquisitions.
///
/// Cheap to clone, and all clones are the same, so a fake of a database can inspect the locks too.
/// The [module](self) has an example.
///
/// Misuse by a test, such as holding a key that is already held, panics with a message, as with
/// [`assert!`].
#[derive(Clone)]
pub struct TestLocks {
    shared: Arc<Shared>,
    manager: LockManager,
}

/// Without the manager, because its store must not keep the manager alive.
struct Shared {
    store: Arc<ScriptedStore>,
    record: Arc<Record>,
    settings: LockManagerBuilder,
    /// The watchdogs of all managers that still exist.
    watchdogs: Mutex<Vec<Weak<Watchdog>>>,
    processes: AtomicU32,
}

impl TestLocks {
    /// Locks with the default settings: a TTL and a wait budget of ten seconds each.
    #[allow(clippy::new_without_default)] // Each call makes separate locks.
    pub fn new() -> Self {
        Self::with(LockManager::builder()).expect("the default settings are valid")
    }

    /// Locks whose managers have these settings, which must contain neither a URL nor a store.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] as [`LockManagerBuilder::build`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use lockattr::LockManager;
    /// use lockattr::testing::TestLocks;
    ///
    /// let impatient = LockManager::builder().wait(Duration::from_millis(100));
    /// let locks = TestLocks::with(impatient)?;
    /// # drop(locks);
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    pub fn with(settings: LockManagerBuilder) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            store: Arc::default(),
            record: Arc::default(),
            settings,
            watchdogs: Mutex::default(),
            processes: AtomicU32::new(1),
        });
        let manager = shared.manager("test")?;
        Ok(Self { shared, manager })
    }

    /// The manager of the code under test.
    pub fn manager(&self) -> &LockManager {
        &self.manager
    }

    /// Another process of the fleet, over the same store.
    ///
    /// Waiters for its locks see it as `process-2`, `process-3`, and so on. The process ends when
    /// the manager and all its guards are dropped.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::testing::TestLocks;
    /// use lockattr::{Error, distributed_lock};
    ///
    /// #[distributed_lock(key = "nightly", wait = "0s")]
    /// async fn nightly() -> Result<(), Error> {
    ///     tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    ///     Ok(())
    /// }
    ///
    /// let locks = TestLocks::new();
    /// let other_node = locks.another_process();
    /// let (here, there) = tokio::join!(locks.scope(nightly()), other_node.scope(nightly()));
    /// assert!(here.is_ok() && matches!(there, Err(Error::Contended { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn another_process(&self) -> LockManager {
        let number = self.shared.processes.fetch_add(1, Ordering::Relaxed) + 1;
        let manager = self.shared.manager(&format!("process-{number}"));
        manager.expect("the first one had the same settings")
    }

    /// Runs `future` with the [manager](Self::manager) as the default one, as
    /// [`LockManager::scope`] does, and in place of all named ones (`manager = "billing"`).
    ///
    /// Tasks that it spawns are outside, unless wrapped with [`inherit`](crate::inherit).
    ///
    /// # Cancel safety
    ///
    /// Dropping the returned future drops `future` and nothing else.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use lockattr::{Error, distributed_lock, testing::TestLocks};
    ///
    /// #[distributed_lock(key = "invoice:<id>", manager = "billing")]
    /// async fn invoice(id: u64) -> Result<u64, Error> {
    ///     Ok(id)
    /// }
    ///
    /// assert_eq!(TestLocks::new().scope(invoice(7)).await?, 7);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        default_manager::scope_of_all(self.manager.clone(), future)
    }

    /// The key under its name in the store.
    #[track_caller]
    fn key(&self, key: impl AsRef<str>) -> LockKey {
        self.manager.key(key.as_ref()).unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Shared {
    fn manager(&self, service: &str) -> Result<LockManager, Error> {
        let settings = self.settings.clone().service(service).store(self.store.clone());
        let manager = settings
            .recorder(Recorder(Some(ServiceObserver::new(&self.record, service))))
            .build()?;
        let mut watchdogs = self.watchdogs.lock();
        watchdogs.retain(|watchdog| watchdog.strong_count() > 0);
        watchdogs.push(Arc::downgrade(manager.watchdog()));
        Ok(manager)
    }

    fn watchdogs(&self) -> Vec<Arc<Watchdog>> {
        let watchdogs = self.watchdogs.lock();
        watchdogs.iter().filter_map(Weak::upgrade).collect()
    }
}

impl fmt::Debug for TestLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestLocks")
            .field("held", &self.shared.store.locks.held())
            .field("acquisitions", &self.acquisitions())
            .finish_non_exhaustive()
    }
}
