//! One test on one engine: its holders, its waiters, and the checks at its end.

use std::time::Duration;

use lockattr::{Error, LockGuard, LockManager, LockOptions};
use lockattr_tests::{Engine, Node, ResourceFile, Wires, eventually, in_time, node, with_query};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// One test on one engine.
pub(crate) struct Case<'a, E> {
    pub(crate) engine: &'a E,
    /// The lock under test.
    pub(crate) key: &'static str,
    /// The resource that the lock guards.
    pub(crate) resource: ResourceFile,
    alone: bool,
    _directory: TempDir,
}

impl<'a, E: Engine> Case<'a, E> {
    pub(crate) fn alone(engine: &'a E, key: &'static str) -> Self {
        let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
        let resource = ResourceFile::at(directory.path().join("resource"));
        Self { engine, key, resource, alone: true, _directory: directory }
    }

    pub(crate) fn among_others(engine: &'a E, key: &'static str) -> Self {
        Self { alone: false, ..Self::alone(engine, key) }
    }

    /// Returns a manager with connections of its own, so the store sees it as another process.
    pub(crate) async fn manager(&self) -> LockManager {
        connected(&lasting(&self.engine.url())).await
    }

    /// Returns a manager whose network can fail and whose connections have been used.
    pub(crate) async fn manager_over(&self, wires: &Wires) -> LockManager {
        self.warm(&lasting(&wires.url())).await
    }

    /// Like `quick_over`, with leases that end within the test.
    pub(crate) async fn short_over(&self, wires: &Wires) -> LockManager {
        self.warm(&wires.url_with(&format!("{}&{}", lease_of::<E>(LEASE), E::QUICK))).await
    }

    /// Like `manager_over`, and reports soon that no reply comes. A busy server is silent by chance too, so
    /// [`acquire_at_last`](Self::acquire_at_last) asks again.
    pub(crate) async fn quick_over(&self, wires: &Wires) -> LockManager {
        self.warm(&with_query(&lasting(&wires.url()), E::QUICK)).await
    }

    async fn warm(&self, url: &str) -> LockManager {
        let manager = connected(url).await;
        let warm = acquire_at_last(&manager, &format!("{}_warm", self.key)).await;
        // A release without a reply is retried in the background.
        warm.release().await.ok();
        manager
    }

    /// Starts a process over `url`, with the resource of this test.
    pub(crate) fn node(&self, url: &str) -> Node {
        node!("lock", url = url, resource = self.resource.path())
    }

    /// How long a lease lasts that ends within the test.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_secs(LEASE.into())
    }

    /// For a process whose leases end within the test.
    pub(crate) fn short_url(&self) -> String {
        self.engine.url_with(&lease_of::<E>(LEASE))
    }

    /// For a process that dies. Where a lease ends with its session, that lease is short.
    pub(crate) fn long_url(&self) -> String {
        match E::SHORT {
            "ttl=2s" => lasting(&self.engine.url()),
            _ => self.short_url(),
        }
    }

    /// Waits until this many processes wait for the lock in the store's queue.
    pub(crate) async fn waits(&self, processes: u64) {
        let observer = self.manager().await;
        eventually("they wait", async || {
            // The store may just have failed.
            let held = observer.held_locks().await.unwrap_or_default();
            held.iter().any(|held| held.key == self.key && held.waiting >= processes)
        })
        .await;
    }

    /// Makes a process acquire the lock.
    pub(crate) async fn acquire_in(&self, node: &mut Node) {
        node.say(&format!("acquire {}", self.key)).await;
        let reply = node.line().await;
        assert!(reply.starts_with("held "), "the node replied: {reply}");
    }

    pub(crate) async fn acquire(&self, manager: &LockManager) -> LockGuard {
        in_time(manager.acquire(self.key, LockOptions::new())).await.unwrap()
    }

    /// Acquires by a manager to which a busy server may seem silent.
    pub(crate) async fn acquire_at_last(&self, manager: &LockManager) -> LockGuard {
        acquire_at_last(manager, self.key).await
    }

    /// Spawns a task that waits for the lock, works under it and releases it. Returns the time of
    /// the acquisition.
    pub(crate) fn spawn_waiter(&self, manager: LockManager) -> JoinHandle<Instant> {
        let (key, resource) = (self.key, self.resource.clone());
        tokio::spawn(async move {
            let guard = manager.acquire(key, LockOptions::new()).await.unwrap();
            let got_in = Instant::now();
            add_one(&resource, &guard).await;
            guard.release().await.unwrap();
            got_in
        })
    }

    /// Returns what the store holds for this test, or everything if no other test uses the store.
    pub(crate) async fn left(&self) -> Vec<String> {
        let mut left = self.engine.left().await;
        left.retain(|line| self.alone || line.contains(self.key));
        left
    }

    /// Waits until the store holds nothing of this test.
    pub(crate) async fn nothing_left(&self) {
        let what = format!("nothing of `{}` is left", self.key);
        eventually(&what, async || self.left().await.is_empty()).await;
    }
}

/// Connects, with retries: a busy machine may need longer than the URL's timeouts.
pub(crate) async fn connected(url: &str) -> LockManager {
    let connected = async {
        loop {
            match LockManager::connect(url).await {
                Ok(manager) => return manager,
                Err(Error::Store { .. }) => sleep(Duration::from_millis(100)).await,
                Err(error) => panic!("{error:?}"),
            }
        }
    };
    in_time(connected).await
}

/// Acquires, whatever the store does not answer.
pub(super) async fn acquire_at_last(manager: &LockManager, key: &str) -> LockGuard {
    let acquired = async {
        loop {
            match manager.acquire(key, LockOptions::new()).await {
                Ok(guard) => return guard,
                Err(Error::Store { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    };
    in_time(acquired).await
}

/// Seconds that a busy process does not lose.
const LEASE: u32 = 15;

/// Settings under which the lock of a silent holder lasts this many seconds. Where its session must
/// end too, the lease takes two thirds of them, and the session as many more.
pub(crate) fn lease_of<E: Engine>(seconds: u32) -> String {
    match E::SHORT {
        "ttl=2s" => format!("ttl={seconds}s"),
        _ => format!("ttl={}s&session_timeout={}s", seconds * 2 / 3, seconds * 4 / 3),
    }
}

/// A quorum has a longest lease of its own.
fn lasting(url: &str) -> String {
    match url.starts_with("redlock:") {
        true => with_query(url, "ttl=10m&max_ttl=10m"),
        false => url.to_owned(),
    }
}

/// Adds one to the resource, as a holder whose lease has just begun.
pub(crate) async fn add_one(resource: &ResourceFile, guard: &LockGuard) {
    match resource.add(guard, Duration::from_millis(1)).await {
        Ok(added) => assert!(added, "its lease has just begun"),
        Err(overlap) => panic!("{overlap}"),
    }
}
