//! Two processes of which the second waits while the first runs its body: in memory, over Redis and PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use lockattr::testing::TestLocks;
use lockattr::{Error, LockManager};
use lockattr_tests::{PostgresServer, RedisServer, eventually};
use tokio::sync::Semaphore;

/// What a body waits for.
pub(super) type Gate = Arc<Semaphore>;

/// Two processes, and a third that watches.
pub(super) struct Pair {
    pub(super) one: LockManager,
    pub(super) other: LockManager,
    observer: LockManager,
    pub(super) gate: Gate,
    /// Lives as long as the managers do.
    _redis: Option<RedisServer>,
}

impl Pair {
    pub(super) fn in_memory() -> Self {
        let locks = TestLocks::new();
        let [one, other, observer] = [(); 3].map(|()| locks.another_process());
        Self { one, other, observer, gate: Arc::new(Semaphore::new(0)), _redis: None }
    }

    pub(super) async fn over_redis() -> Self {
        let server = RedisServer::start().await;
        let pair = Self::connect(&server.url()).await;
        Self { _redis: Some(server), ..pair }
    }

    pub(super) async fn over_postgres() -> Self {
        let (url, _) = PostgresServer::shared().await.new_database().await;
        Self::connect(&url).await
    }

    async fn connect(url: &str) -> Self {
        Self {
            one: LockManager::connect(url).await.unwrap(),
            other: LockManager::connect(url).await.unwrap(),
            observer: LockManager::connect(url).await.unwrap(),
            gate: Arc::new(Semaphore::new(0)),
            _redis: None,
        }
    }

    /// The values of two calls that lock `key`. The body of the first ends when the second has waited for it.
    pub(super) async fn call<A, B>(
        &self,
        key: &str,
        first: impl Future<Output = Result<A, Error>>,
        second: impl Future<Output = Result<B, Error>>,
    ) -> (A, B) {
        let second = async {
            self.held(key, 0).await;
            self.other.scope(second).await
        };
        let opens = async {
            self.held(key, 1).await;
            // A result counts as older than it is by the doubt of clocks and by the time of a reply, and one that is
            // older than the call is not taken.
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.gate.add_permits(1000);
        };
        let (first, second, ()) = tokio::join!(self.one.scope(first), second, opens);
        self.gate.forget_permits(1000);
        (first.unwrap(), second.unwrap())
    }

    async fn held(&self, key: &str, waiting: u64) {
        eventually("the lock is held, and waited for", async || {
            let held = self.observer.held_locks().await.unwrap();
            held.iter().any(|held| held.key == key && held.waiting == waiting)
        })
        .await;
    }
}
