//! One test on one engine: its holders, its waiters, and the checks at its end.

use std::time::Duration;

use lockattr::{Error, LockGuard, LockManager, LockOptions};
use lockattr_tests::{Engine, Node, ResourceFile, Wires, eventually, in_time, node};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::{LIMIT, SLACK, SOON};

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
        // Every request here gets a reply, but many other tests share two cores.
        connected(&self.engine.url_with("response_timeout=5s")).await
    }

    /// Returns a manager whose network can fail and whose connections have been used.
    pub(crate) async fn manager_over(&self, wires: &Wires) -> LockManager {
        self.warm(&wires.url_with(E::QUICK)).await
    }

    /// Like `manager_over`, with short leases.
    pub(crate) async fn short_over(&self, wires: &Wires) -> LockManager {
        self.warm(&wires.url_with(&short::<E>())).await
    }

    async fn warm(&self, url: &str) -> LockManager {
        let manager = connected(url).await;
        let warm = manager.acquire(format!("{}_warm", self.key), long_wait()).await.unwrap();
        // A release without a reply is retried in the background.
        warm.release().await.ok();
        manager
    }

    /// Starts a process over `url`, with the resource of this test.
    pub(crate) fn node(&self, url: &str) -> Node {
        node!("lock", url = url, resource = self.resource.path())
    }

    pub(crate) fn long_wait_url(&self) -> String {
        self.engine.url_with(&format!("{}&wait=60s", short::<E>()))
    }

    /// Makes a process acquire the lock.
    pub(crate) async fn acquire_in(&self, node: &mut Node) {
        node.say(&format!("acquire {}", self.key)).await;
        let reply = node.line().await;
        assert!(reply.starts_with("held "), "the node replied: {reply}");
    }

    pub(crate) async fn acquire(&self, manager: &LockManager) -> LockGuard {
        in_time(manager.acquire(self.key, long_wait())).await.unwrap()
    }

    /// Spawns a task that waits for the lock, works under it and releases it. Returns the time of
    /// the acquisition.
    pub(crate) fn spawn_waiter(&self, manager: LockManager) -> JoinHandle<Instant> {
        let (key, resource) = (self.key, self.resource.clone());
        tokio::spawn(async move {
            let guard = manager.acquire(key, long_wait()).await.unwrap();
            let got_in = Instant::now();
            add_one(&resource, &guard).await;
            guard.release().await.unwrap();
            got_in
        })
    }

    /// Returns when the waiter acquired the lock. Fails if that was later after `since` than the
    /// engine promises.
    pub(crate) async fn expect_acquired(
        &self,
        waiting: JoinHandle<Instant>,
        since: Instant,
    ) -> Instant {
        expect_acquired_within(E::GIVES_UP_WITHIN + SLACK, waiting, since).await
    }

    /// Fails unless a waiter acquires the lock long before a lease could have ended.
    pub(crate) async fn expect_acquired_soon(&self, waiting: JoinHandle<Instant>, since: Instant) {
        expect_acquired_within(SOON, waiting, since).await;
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
        let limit = E::GIVES_UP_WITHIN + SLACK;
        let gone = async {
            eventually(&what, async || self.left().await.is_empty()).await;
        };
        // Fail before `eventually` does, with a message that lists what is left.
        if timeout(limit - Duration::from_secs(1), gone).await.is_err() {
            panic!("left in the store: {:#?}", self.left().await);
        }
    }
}

/// Connects, with retries: a loaded machine may need longer than the URL's timeouts.
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

pub(crate) async fn expect_acquired_within(
    limit: Duration,
    waiting: JoinHandle<Instant>,
    since: Instant,
) -> Instant {
    let got_in = in_time(waiting).await.unwrap();
    let after = got_in.saturating_duration_since(since);
    assert!(after < limit, "the next got in after {after:?}");
    got_in
}

/// Settings for short leases and short timeouts.
pub(crate) fn short<E: Engine>() -> String {
    format!("{}&{}", E::SHORT, E::QUICK)
}

/// Options of a waiter that must acquire the lock.
pub(crate) fn long_wait() -> LockOptions {
    LockOptions::new().wait(LIMIT)
}

/// Adds one to the resource, as a holder whose lease has just begun.
pub(crate) async fn add_one(resource: &ResourceFile, guard: &LockGuard) {
    match resource.add(guard, Duration::from_millis(1)).await {
        Ok(added) => assert!(added, "its lease has just begun"),
        Err(overlap) => panic!("{overlap}"),
    }
}
