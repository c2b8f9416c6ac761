//! Joining the queue when something fails on the way.

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Wire, eventually, in_time, with_query};
use tokio::time::timeout;

use super::{Database, acquire, is_free, manager};

/// The claim waits for the lock on one connection, and another connection checks whether it is
/// queued. The second fails.
#[tokio::test]
async fn a_process_that_does_not_know_whether_it_is_queued_leaves_the_queue() {
    let database = Database::new().await;
    let role = format!("mute_{}", database.name);
    let client = database.client().await;
    client
        .batch_execute(&format!(
            "create role {role} login;
             revoke execute on function pg_notify(text, text) from public"
        ))
        .await
        .unwrap();
    let holder = database.sessions("").await;
    let url = database.url.replace("lockattr@", &format!("{role}@"));
    let mute = manager(&with_query(&url, "lock=session&retry=2&retry_delay=50ms")).await;
    let guard = acquire(&holder, "a").await;
    let outcome = in_time(mute.acquire("a", LockOptions::new())).await;
    // The last attempt does not enter the queue.
    assert!(matches!(outcome, Err(Error::Store { .. } | Error::Contended { .. })), "{outcome:?}");
    database.waiting(0).await;
    guard.release().await.unwrap();
    assert!(is_free(&holder, "a").await, "granted to no caller");
    database.nobody_locks().await;
}

/// The lock's name is part of a message to the holder, whose length is limited.
#[tokio::test]
async fn names_too_long_for_a_notification_are_refused_and_shorter_ones_work() {
    let database = Database::new().await;
    let prefix = |bytes: usize| format!("prefix={}", "p".repeat(bytes));
    let outcome =
        database.sessions(&prefix(7_999)).await.try_acquire("a", LockOptions::new()).await;
    let Err(Error::InvalidKey(sentence)) = outcome else { panic!("{outcome:?}") };
    assert!(sentence.contains("8000 bytes"), "{sentence}");
    let longest = prefix(7_998);
    let (one, two) = (database.sessions(&longest).await, database.sessions(&longest).await);
    let guard = acquire(&one, "a").await;
    let next = tokio::spawn(async move { acquire(&two, "a").await.release().await });
    database.waiting(1).await;
    guard.release().await.unwrap();
    in_time(next).await.unwrap().unwrap();
    database.nobody_locks().await;
}

/// Connecting takes longer than any of them waits, but the connection that the first began serves
/// the others.
#[tokio::test]
async fn callers_with_a_short_timeout_get_a_connection_in_the_end() {
    let database = Database::new().await;
    let wire = Wire::start(database.server.addr()).await;
    let url = database.url.replace(&database.server.addr(), &wire.addr());
    let url = with_query(&url, "lock=session&connections=1");
    let manager = LockManager::builder().url(&url).build().unwrap();
    wire.delay(Duration::from_millis(50));
    let mut acquired = None;
    let acquires = async || {
        let asks = manager.acquire("a", LockOptions::new());
        acquired = timeout(Duration::from_millis(400), asks).await.ok();
        acquired.is_some()
    };
    eventually("a caller gets a connection", acquires).await;
    acquired.unwrap().unwrap().release().await.unwrap();
    database.nobody_locks().await;
}
