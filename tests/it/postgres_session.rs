//! PostgreSQL locks that end without a lease: with a connection, or with a transaction.

mod example;
mod force;
mod lock_table;
mod locks;
mod lost;
mod max_sessions;
mod pooler;
mod runtimes;
mod server_timeouts;
mod silent_transactions;
mod sockets;
mod sqlx_transactions;
mod storms;
mod transactions;
mod wait_queue;

use std::time::Duration;

use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_tests::{PostgresServer, eventually, with_query};
use tokio_postgres::Client;

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

    /// Returns a manager whose locks end with their sessions.
    async fn sessions(&self, query: &str) -> LockManager {
        manager(&with_query(&self.url, &format!("lock=session&{query}"))).await
    }

    /// Returns a manager whose locks are leases.
    async fn leases(&self, query: &str) -> LockManager {
        manager(&with_query(&self.url, query)).await
    }

    async fn client(&self) -> Client {
        self.server.client_of(&self.name).await
    }

    /// Counts the 64-bit advisory locks that a session holds, or waits for.
    async fn locks(&self, granted: bool) -> i64 {
        let client = self.client().await;
        let count = "select count(*) from pg_locks join pg_database as db on db.oid = database
            where locktype = 'advisory' and objsubid = 1 and granted = $1 and datname = $2";
        client.query_one(count, &[&granted, &self.name]).await.unwrap().get(0)
    }

    async fn waiting(&self, count: i64) {
        let there = async || self.locks(false).await == count;
        eventually(&format!("{count} queued"), there).await;
    }

    /// Waits until no session holds or waits for an advisory lock. For `lock=session`, which uses
    /// no others.
    async fn nobody_locks(&self) {
        let none = async || self.locks(true).await + self.locks(false).await == 0;
        eventually("no lock is left", none).await;
    }
}

async fn manager(url: &str) -> LockManager {
    LockManager::connect(url).await.unwrap_or_else(|error| panic!("{url}: {error}"))
}

async fn acquire(manager: &LockManager, key: &str) -> LockGuard {
    let acquired = manager.acquire(key, LockOptions::new()).await;
    acquired.unwrap_or_else(|error| panic!("{key}: {error}"))
}

/// Waits until the lock is free. A waiter that gave up leaves the queue in the background, so a release
/// may still grant it the lock, for the moment that it takes to leave.
async fn becomes_free(manager: &LockManager, key: &str) {
    eventually("it is free", async || is_free(manager, key).await).await;
}

async fn is_free(manager: &LockManager, key: &str) -> bool {
    let guard = manager.try_acquire(key, LockOptions::new()).await.unwrap();
    match guard {
        Some(guard) => {
            guard.release().await.unwrap();
            true
        }
        None => false,
    }
}
