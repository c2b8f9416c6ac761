//! The surroundings of a future under test: a fresh store, our manager, and other clients that want
//! the same locks.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockattr::store::{LockKey, Store};
use lockattr::{Error, LockGuard, LockManager, LockOptions};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::stepped::{Stepped, TRIP};

/// The longest lease that a future under test asks for. Much longer than any command takes, so no
/// lock becomes free by expiry.
pub(super) const LEASE: Duration = Duration::from_millis(300);

/// How long a late reply takes: longer than the lease that it grants.
const LATE: Duration = Duration::from_millis(375);

/// How much longer a slow request takes: its reply comes just too late, right after its lease
/// began.
const SLOW: Duration = Duration::from_millis(294);

/// The time after which everything under way has ended: leases and queue entries have expired.
pub(super) const LONG: Duration = Duration::from_millis(1_500);

/// The limit of our manager for each of the two phases of its shutdown.
const SHUTDOWN_LIMIT: Duration = Duration::from_millis(100);

/// The second key, and the key of `job:<id>`.
pub(super) const OTHER_KEY: &str = "job:7";

/// Every key that a future under test may lock.
pub(super) const KEYS: [&str; 2] = ["a", OTHER_KEY];

/// A store, and our manager a round trip away from it.
#[derive(Clone)]
pub(super) struct World {
    pub(super) store: Arc<Stepped>,
    pub(super) ours: LockManager,
}

impl World {
    pub(super) fn new() -> Self {
        let store = Stepped::new(LATE, SLOW);
        let builder = LockManager::builder().store(store.clone()).service("ours");
        // Such short delays are not randomized, because timers count milliseconds.
        let builder = builder.ttl(LEASE).retry(2).retry_delay(Duration::from_millis(1));
        let ours = builder.shutdown_timeout(SHUTDOWN_LIMIT).build().unwrap();
        Self { store, ours }
    }

    /// Returns the manager of another program, which no trouble reaches.
    pub(super) fn stranger(&self, service: &str) -> LockManager {
        let builder = LockManager::builder().store(self.store.memory().clone());
        builder.service(service).build().unwrap()
    }

    /// Makes another program hold the key.
    pub(super) async fn other_holds(&self, key: &str) -> Other {
        let guard = self.stranger("other").acquire(key, for_good()).await.unwrap();
        Other(Arc::new(Mutex::new(Some(guard))))
    }

    /// Makes another program acquire the key after a while, if it is free then.
    pub(super) fn other_acquires_after(&self, key: &'static str, time: Duration) -> Other {
        let (other, manager) = (Other::default(), self.stranger("other"));
        let acquirer = other.clone();
        tokio::spawn(async move {
            sleep(time).await;
            *acquirer.0.lock().unwrap() = manager.try_acquire(key, for_good()).await.unwrap();
        });
        other
    }

    /// Returns the service that holds `key` according to the store.
    pub(super) async fn owner(&self, key: &str) -> Option<String> {
        let key = LockKey::new("lock:", key).unwrap();
        let holder = self.store.memory().holder(&key).await.unwrap();
        holder.map(|holder| holder.service.expect("every manager here has a name"))
    }

    /// Acquires a lock for our manager before the test begins.
    pub(super) async fn held(&self, options: LockOptions) -> LockGuard {
        self.ours.acquire("a", options).await.unwrap()
    }
}

/// Options of a lock that is held until it is released.
pub(super) fn for_good() -> LockOptions {
    LockOptions::new().ttl(3600 * LEASE).renew(false)
}

/// Sleeps half a round trip `count` times, so each stage of a command under way is a point.
pub(super) async fn ticks(count: usize) {
    for _ in 0..count {
        sleep(TRIP / 2).await;
    }
}

/// A lock that another program may hold.
#[derive(Clone, Default)]
pub(super) struct Other(Arc<Mutex<Option<LockGuard>>>);

impl Other {
    pub(super) fn release_after(&self, time: Duration) {
        let other = self.clone();
        tokio::spawn(async move {
            sleep(time).await;
            other.release().await;
        });
    }

    pub(super) async fn release(&self) {
        let guard = self.0.lock().unwrap().take();
        if let Some(guard) = guard {
            guard.release().await.unwrap();
        }
    }

    pub(super) fn holds(&self) -> bool {
        self.0.lock().unwrap().is_some()
    }
}

/// What belongs to us beside the future under test, and outlives it.
pub(super) enum Survivor {
    Nothing,
    /// A hold that the future must leave alone. `max_hold` may end it.
    Held {
        guard: LockGuard,
        at_most_until: Option<Instant>,
    },
    /// A hold that a shutdown ends.
    ShutDown(LockGuard),
    /// Calls that a shutdown ends.
    Called(JoinSet<Result<(), Error>>),
}

/// A future under test.
pub(super) struct Case {
    pub(super) future: Pin<Box<dyn Future<Output = Result<(), Error>>>>,
    pub(super) survivor: Survivor,
    pub(super) other: Other,
}

impl Case {
    /// Creates a case of a future that leaves nothing.
    pub(super) fn of(future: impl Future<Output = Result<(), Error>> + 'static) -> Self {
        Self { future: Box::pin(future), survivor: Survivor::Nothing, other: Other::default() }
    }

    /// Adds a lock that another program holds.
    pub(super) fn with_other(self, other: Other) -> Self {
        Self { other, ..self }
    }

    pub(super) fn with_survivor(self, survivor: Survivor) -> Self {
        Self { survivor, ..self }
    }

    /// Adds the guard of a hold that the future leaves alone.
    pub(super) fn with_surviving_hold(self, guard: LockGuard) -> Self {
        self.with_survivor(Survivor::Held { guard, at_most_until: None })
    }
}
