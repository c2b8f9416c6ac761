//! A real MariaDB, or MySQL where the tests run on that: the rows in it, the rights it needs, and
//! what happens when it goes away.

mod away;
mod batch;
mod connections;
mod counts;
mod credentials;
mod dialect;
mod found_rows;
mod left;
mod mark_done;
mod observer;
mod overload;
mod own_client;
mod purge;
mod reach;
mod real;
mod rights;
mod session;
mod session_limit;
mod swept;
mod tls;
mod unproven;
mod waiting;
mod way;

use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{MariaDb, eventually, in_time, with_query};
use tokio::task::JoinSet;

/// A lease that outlasts every test.
const HOUR: Duration = Duration::from_secs(3_600);

/// A database of the test's own, on the server of all tests.
struct Database {
    server: &'static MariaDb,
    name: String,
}

impl Database {
    async fn new() -> Self {
        let server = MariaDb::shared().await;
        Self { server, name: server.database().await }
    }

    fn url(&self, settings: &str) -> String {
        with_query(&self.server.url_of(&self.name), settings)
    }

    async fn manager(&self, settings: &str) -> LockManager {
        LockManager::connect(self.url(settings)).await.expect("it answers")
    }

    async fn number(&self, query: &str) -> i64 {
        self.server.query::<i64>(&self.name, query).await[0]
    }

    async fn execute(&self, statement: &str) {
        self.server.execute(&self.name, statement).await;
    }

    /// Waits until nothing is left. Background requests may take a while.
    async fn holds_nothing(&self) {
        let empty = async || self.server.left_in(&self.name).await.is_empty();
        eventually("nothing is left", empty).await;
    }

    /// Waits until so many claims are in the store's queues.
    async fn has_queued(&self, count: i64) {
        let queued = "SELECT COUNT(*) FROM lockattr_v2_queue";
        let there = async || self.number(queued).await == count;
        eventually(&format!("{count} queued"), there).await;
    }

    /// When a claim in the queue last sent a request, in microseconds of the server's clock; 0 without one.
    async fn asked(&self) -> i64 {
        self.number("SELECT COALESCE(MAX(asked), 0) FROM lockattr_v2_queue").await
    }
}

/// What a waiter does by itself happens this many microseconds after its last request, or later. What happens
/// sooner has another cause.
const BY_ITSELF: i64 = 4_900_000;

/// Both managers take turns at a lock, each so often.
async fn take_turns(managers: [LockManager; 2], turns: usize) {
    let mut tasks = JoinSet::new();
    for manager in managers {
        tasks.spawn(async move {
            for _ in 0..turns {
                let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
                guard.release().await.unwrap();
            }
        });
    }
    in_time(tasks.join_all()).await;
}
