//! One test on one engine: who locks there, which waits, and what there is to see in the end.

use std::time::Duration;

use lockattr::{Error, LockGuard, LockManager, LockOptions};
use lockattr_tests::{Engine, Node, ResourceFile, Wires, eventually, node};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::{LIMIT, SLACK, SOON};

/// One test on one engine.
pub(crate) struct Case<'a, E> {
    pub(crate) engine: &'a E,
    /// The lock that it is about.
    pub(crate) key: &'static str,
    /// What that lock guards.
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

    /// A manager with connections of its own: all that the store can tell of a process.
    pub(crate) async fn manager(&self) -> LockManager {
        // What it is asked has an answer; many tests beside share two cores.
        connected(&self.engine.url_with("connect_timeout=5s&response_timeout=5s")).await
    }

    /// One whose network can fail, with connections that have been used.
    pub(crate) async fn manager_over(&self, wires: &Wires) -> LockManager {
        self.warm(&wires.url_with(E::QUICK)).await
    }

    /// The same with short leases.
    pub(crate) async fn short_over(&self, wires: &Wires) -> LockManager {
        self.warm(&wires.url_with(&short::<E>())).await
    }

    async fn warm(&self, url: &str) -> LockManager {
        let manager = connected(url).await;
        let warm = manager.acquire(format!("{}_warm", self.key), patient()).await.unwrap();
        // Without an answer it is tried again, as any release.
        warm.release().await.ok();
        manager
    }

    /// A process with short leases, over `url`, which waits for as long as it takes.
    pub(crate) fn node(&self, url: &str) -> Node {
        node!("lock", url = url, resource = self.resource.path())
    }

    pub(crate) fn patient_url(&self) -> String {
        self.engine.url_with(&format!("{}&wait=60s", short::<E>()))
    }

    /// Has a process take the lock.
    pub(crate) async fn holds(&self, node: &mut Node) {
        node.say(&format!("acquire {}", self.key)).await;
        let answer = node.line().await;
        assert!(answer.starts_with("held "), "the node said: {answer}");
    }

    pub(crate) async fn acquire(&self, manager: &LockManager) -> LockGuard {
        timeout(LIMIT, manager.acquire(self.key, patient())).await.expect("a hang").unwrap()
    }

    /// A task that waits for the lock, works under it and gives it back; when it got in.
    pub(crate) fn waits(&self, manager: LockManager) -> JoinHandle<Instant> {
        let (key, resource) = (self.key, self.resource.clone());
        tokio::spawn(async move {
            let guard = manager.acquire(key, patient()).await.unwrap();
            let got_in = Instant::now();
            works(&resource, &guard).await;
            guard.release().await.unwrap();
            got_in
        })
    }

    /// When a waiter gets in: not later than the engine promises after `since`.
    pub(crate) async fn gets_in(&self, waiting: JoinHandle<Instant>, since: Instant) -> Instant {
        gets_in_within(E::GIVES_UP_WITHIN + SLACK, waiting, since).await
    }

    /// A waiter for no lease's end gets in long before a lease could have ended.
    pub(crate) async fn gets_in_soon(&self, waiting: JoinHandle<Instant>, since: Instant) {
        gets_in_within(SOON, waiting, since).await;
    }

    /// What there is of this test in the store; of all, where there are no others.
    pub(crate) async fn left(&self) -> Vec<String> {
        let mut left = self.engine.left().await;
        left.retain(|line| self.alone || line.contains(self.key));
        left
    }

    /// Nothing of ours stays.
    pub(crate) async fn nothing_left(&self) {
        let what = format!("nothing of `{}` is left", self.key);
        let limit = E::GIVES_UP_WITHIN + SLACK;
        let gone = async {
            eventually(limit, &what, async || self.left().await.is_empty()).await;
        };
        // What is left is worth more than that something is.
        if timeout(limit - Duration::from_secs(1), gone).await.is_err() {
            panic!("left in the store: {:#?}", self.left().await);
        }
    }
}

/// A machine under load may need more than the wait budget of a URL's settings to connect.
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
    timeout(LIMIT, connected).await.expect("nobody answers")
}

pub(crate) async fn gets_in_within(
    limit: Duration,
    waiting: JoinHandle<Instant>,
    since: Instant,
) -> Instant {
    let got_in = timeout(LIMIT, waiting).await.expect("nobody gets in").unwrap();
    let after = got_in.saturating_duration_since(since);
    assert!(after < limit, "the next got in after {after:?}");
    got_in
}

/// Settings for short leases and short wait budgets with servers.
pub(crate) fn short<E: Engine>() -> String {
    format!("{}&{}", E::SHORT, E::QUICK)
}

/// For who has to get in.
pub(crate) fn patient() -> LockOptions {
    LockOptions::new().wait(LIMIT)
}

/// Adds one to the shelf, as a holder that is certainly one.
pub(crate) async fn works(resource: &ResourceFile, guard: &LockGuard) {
    match resource.add(guard, Duration::from_millis(1)).await {
        Ok(added) => assert!(added, "its lease has just begun"),
        Err(fenced) => panic!("{fenced}"),
    }
}
