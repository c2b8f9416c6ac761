//! Releases that share a statement.

use std::sync::Arc;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, MysqlStore, ReleaseOutcome, ReleaseRequest,
    Store as _,
};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::*;

/// Begins a transaction that keeps the row of this lock.
async fn begin(server: &MariaDb, database: &str, key: &str) -> Conn {
    let mut other = server.cli(database).await;
    let row = "SELECT name FROM lockattr_v2_locks WHERE id = UNHEX(SHA2(?, 256)) FOR UPDATE";
    other.query_drop("START TRANSACTION").await.unwrap();
    let name: Option<Vec<u8>> = other.exec_first(row, (format!("lock:{key}"),)).await.unwrap();
    assert!(name.is_some(), "{key} is not held");
    other
}

/// The server commits the release of `a`, and refuses that of `b` in the same statement. So the
/// repeated release of `a` finds nothing.
///
/// Red without: `after` in the replies to a batch that failed.
#[tokio::test]
async fn a_release_whose_batch_fails_after_its_commit_is_not_reported_as_not_held() {
    let server = MariaDb::with(&[]).await;
    let database = server.database().await;
    // The server refuses to wait for a row for longer than the whole seconds of this.
    let query = "connections=1&connect_timeout=10s&response_timeout=3900ms&heartbeat=60s";
    let store = MysqlStore::open(&format!("{}?{query}", server.url_of(&database))).unwrap();
    let mut releases = Vec::new();
    for key in ["busy", "a", "b"] {
        let claim = Arc::new(Claim::new(LockKey::new("lock:", key).unwrap(), "service=test"));
        let held = store.acquire(&AcquireRequest::new(claim.clone(), LIMIT * 3)).await.unwrap();
        assert!(matches!(held, AcquireOutcome::Acquired { .. }));
        releases.push(ReleaseRequest::new(claim));
    }
    // Only a release at a later time has a transaction of its own.
    releases[2].after = Duration::from_millis(1);
    // Behind the sweep that follows the first request.
    store.ping().await.unwrap();
    let mut has_busy = begin(&server, &database, "busy").await;
    let mut has_b = begin(&server, &database, "b").await;
    let goes_on = async {
        // That of `busy`, for the row, and the others for it.
        let waits = "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'";
        let waiting = async || {
            let waits: Vec<(String, u64)> = server.query(&database, waits).await;
            waits[0].1 == 1
        };
        eventually(LIMIT, "the releases wait", waiting).await;
        has_busy.query_drop("ROLLBACK").await.unwrap();
    };
    let (outcomes, ()) = tokio::join!(store.release(&releases), goes_on);
    assert!(matches!(outcomes[1], Err(_)), "{:?}", outcomes[1]);
    assert!(matches!(outcomes[2], Err(_)), "{:?}", outcomes[2]);
    let left = server.query::<String>(&database, "SELECT name FROM lockattr_v2_locks").await;
    assert_eq!(left, ["lock:b"]);
    has_b.query_drop("ROLLBACK").await.unwrap();
    releases[2].after = Duration::ZERO;
    let released = store.release(&releases[2..]).await.remove(0);
    assert!(matches!(released, Ok(ReleaseOutcome::Released)), "{released:?}");
    assert_eq!(server.left_in(&database).await, [""; 0]);
}
