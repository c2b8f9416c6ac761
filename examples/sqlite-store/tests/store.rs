//! The store keeps the contract of all stores, on a real file with a connection for each process.

use lockattr::store::AnyStore;
use lockattr_contract::Fleet;
use lockattr_sqlite_store::SqliteStore;
use tempfile::TempDir;

/// A file for each check.
struct OnSqlite(TempDir);

impl Fleet for OnSqlite {
    async fn start() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn node(&self) -> AnyStore {
        AnyStore::new(SqliteStore::open(self.0.path().join("locks.db")).expect("a database"))
    }
}

lockattr_contract::store_contract!(OnSqlite, without: {
    wait_queue: "SQLite cannot notify another process",
    shared: "a lock is one row with one holder",
    permits: "a lock is one row with one holder",
    several_keys: "a lock is one row with one holder",
    companions: "only of use with a wait queue",
    downgrade: "there are no shared locks",
});
