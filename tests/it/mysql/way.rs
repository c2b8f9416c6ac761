//! The connection to the server is slow for a moment, or breaks at a bad one.

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Wire, eventually, in_time, with_query};
use mysql_async::prelude::Queryable;
use tokio::time::sleep;

use super::Database;

/// A manager over the test's own proxy.
fn over(wire: &Wire, database: &Database, settings: &str) -> LockManager {
    let url = database.server.url_of(&database.name).replace(&database.server.addr(), &wire.addr());
    LockManager::builder().url(with_query(&url, settings)).build().unwrap()
}

/// A late ping is no reason to drop the connection, which is the lock.
#[tokio::test]
async fn a_slow_ping_loses_no_session_lock() {
    let database = Database::new().await;
    let wire = Wire::start(database.server.addr()).await;
    let settings = "lock=session&heartbeat=200ms&response_timeout=300ms";
    let here = over(&wire, &database, settings);
    let there = database.manager("lock=session").await;
    let guard = here.acquire("a", LockOptions::new()).await.unwrap();
    let before = wire.came();
    wire.hold();
    eventually("pinged", async || wire.came() > before).await;
    // Longer than every timeout.
    sleep(Duration::from_millis(900)).await;
    wire.pass().await;
    sleep(Duration::from_millis(600)).await;
    let other = there.try_acquire("a", LockOptions::new()).await.unwrap();
    assert!(other.is_none(), "it was given away");
    guard.ensure_held().unwrap();
    // A server that is busy with other tests may answer late.
    guard.release().await.ok();
    there.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
}

/// The next renewal is twenty minutes away.
#[tokio::test]
async fn the_end_of_a_session_is_detected_by_the_next_heartbeat() {
    let database = Database::new().await;
    let here = database.manager("lock=session&ttl=1h&heartbeat=300ms").await;
    let there = database.manager("lock=session").await;
    let guard = here.acquire("a", LockOptions::new()).await.unwrap();
    let ids = "SELECT id FROM information_schema.processlist WHERE db = DATABASE() \
               AND id <> CONNECTION_ID()";
    for id in database.server.query::<i64>(&database.name, ids).await {
        // One of them may be ending by itself.
        let _gone =
            database.server.cli(&database.name).await.query_drop(format!("KILL {id}")).await;
    }
    in_time(guard.lost()).await;
    guard.ensure_held().unwrap_err();
    let next = there.acquire("a", LockOptions::new()).await.unwrap();
    assert!(guard.release().await.is_err(), "it was not ours any more");
    next.ensure_held().unwrap();
    next.release().await.unwrap();
}

/// The server grants the lock, the connection ends before the reply, and there is no other
/// connection.
#[tokio::test]
async fn a_lease_whose_grant_was_cut_off_is_released() {
    let database = Database::new().await;
    let wire = Wire::start(database.server.addr()).await;
    let settings = "connections=1&heartbeat=1h";
    let manager = over(&wire, &database, settings);
    manager.acquire("first", LockOptions::new()).await.unwrap().release().await.unwrap();
    database.holds_nothing().await;
    wire.hold_replies();
    let call = {
        let manager = manager.clone();
        tokio::spawn(async move { manager.acquire("a", LockOptions::new().retry(0)).await })
    };
    let leases = "SELECT COUNT(*) FROM lockattr_v2_locks";
    eventually("it is granted", async || database.number(leases).await == 1).await;
    wire.cut().await;
    let outcome = in_time(call).await.unwrap();
    assert!(matches!(outcome, Err(Error::Store { .. })), "{outcome:?}");
    wire.pass().await;
    database.holds_nothing().await;
}
