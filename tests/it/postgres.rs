//! Behavior specific to PostgreSQL: tables, functions, sessions, `LISTEN` and the clock.

mod columns;
mod conflicts;
mod connections;
mod credentials;
mod fencing;
mod first_start;
mod from_config;
mod isolation;
mod mark_done;
mod runtimes;
mod schema;
mod sessions;
mod settings;
mod slow_commits;
mod standby;
mod swept;
mod tables;
mod tls;
mod unproven;
mod url;
mod wait_queue;

use std::time::Duration;

use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_tests::{PostgresServer, eventually, with_query};

/// A database of the test's own, on the shared server.
struct Database {
    server: &'static PostgresServer,
    url: String,
    name: String,
}

impl Database {
    async fn new() -> Self {
        let server = PostgresServer::shared().await;
        let (url, name) = server.new_database().await;
        Self { server, url, name }
    }

    fn url_with(&self, query: &str) -> String {
        with_query(&self.url, query)
    }

    async fn manager(&self, query: &str) -> LockManager {
        manager(&self.url_with(query)).await
    }

    /// Returns the one number that a statement selects.
    async fn number(&self, statement: &str) -> i64 {
        let client = self.server.client_of(&self.name).await;
        let row = client.query_one(statement, &[]).await;
        row.unwrap_or_else(|error| panic!("{statement}: {error:?}")).get(0)
    }

    async fn run(&self, statements: &str) {
        let client = self.server.client_of(&self.name).await;
        let ran = client.batch_execute(statements).await;
        ran.unwrap_or_else(|error| panic!("{statements}: {error:?}"));
    }

    /// Returns how many claims are in the store's queues.
    async fn queued(&self) -> i64 {
        self.number("select count(*) from lockattr_queue").await
    }

    /// Waits until so many are.
    async fn waiting(&self, count: i64) {
        eventually(&format!("{count} queued"), async || self.queued().await == count).await;
    }

    async fn has_nothing_left(&self) {
        let nothing = async || self.server.left_in(&self.name, "public").await.is_empty();
        eventually("nothing is left", nothing).await;
    }
}

async fn manager(url: &str) -> LockManager {
    LockManager::connect(url).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn acquire(manager: &LockManager, key: &str) -> LockGuard {
    let acquired = manager.acquire(key, LockOptions::new()).await;
    acquired.unwrap_or_else(|error| panic!("{key}: {error}"))
}
