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
mod tls;
mod waiting;
mod way;

use std::time::Duration;

use lockattr::LockManager;
use lockattr_tests::{MariaDb, eventually, with_query};
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(20);

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
        // Many other tests share two cores.
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
        let mut left = Vec::new();
        let empty = async || {
            left = self.server.left_in(&self.name).await;
            left.is_empty()
        };
        if timeout(LIMIT, eventually("nothing is left", empty)).await.is_err() {
            panic!("{left:?}");
        }
    }
}
