//! A lock taken by force from a session, from another user's session, and from a transaction.

use lockattr::{Error, LockOptions};

use super::{Database, acquire, manager};
use lockattr_tests::{force_release, in_time, with_query};

/// Red without: `Session::end`, or the advisory `HOLDERS`.
#[tokio::test]
async fn force_ends_the_session_that_has_the_lock() {
    let database = Database::new().await;
    let (one, two) = (database.sessions("").await, database.sessions("").await);
    let operator = database.sessions("").await;
    assert!(!force_release(&operator, "a").await.unwrap(), "the lock is free");
    let guard = acquire(&one, "a").await;
    let waiter = tokio::spawn({
        let two = two.clone();
        async move { acquire(&two, "a").await }
    });
    database.waiting(1).await;
    assert!(force_release(&operator, "a").await.unwrap());
    let next = in_time(waiter).await.unwrap();
    assert!(next.fencing_token() > guard.fencing_token());
    in_time(guard.lost()).await;
    assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
    next.ensure_held().unwrap();
    next.release().await.unwrap();
    database.nobody_locks().await;
}

/// A lock of this process ends alone: its session holds other locks.
///
/// Red without: `release_local`.
#[tokio::test]
async fn force_release_of_an_own_lock_leaves_the_session_alone() {
    let database = Database::new().await;
    let here = database.sessions("connections=1").await;
    let (guard, other) = (acquire(&here, "a").await, acquire(&here, "b").await);
    assert!(force_release(&here, "a").await.unwrap());
    in_time(guard.lost()).await;
    other.ensure_held().unwrap();
    assert!(guard.release().await.is_err());
    other.release().await.unwrap();
    database.nobody_locks().await;
}

/// Red without: `with_advice`.
#[tokio::test]
async fn a_user_who_may_not_terminate_a_session_learns_which_role_may() {
    let database = Database::new().await;
    let here = database.sessions("").await;
    let guard = acquire(&here, "a").await;
    let name = &database.name;
    database.server.run(&format!("create role operator_{name} login")).await;
    let url = database.url.replace("lockattr@", &format!("operator_{name}@"));
    let operator = manager(&with_query(&url, "lock=session")).await;
    let refused = force_release(&operator, "a").await.unwrap_err();
    assert!(matches!(&refused, Error::Store { key, .. } if key == "a"));
    let refused = refused.to_string();
    assert!(refused.contains("select pg_terminate_backend("), "{refused}");
    guard.ensure_held().unwrap();
    guard.release().await.unwrap();
    database.nobody_locks().await;
}

/// Red without: the transactions in `HOLDERS`.
#[tokio::test]
async fn force_release_leaves_the_lock_of_a_transaction_alone() {
    let database = Database::new().await;
    let here = database.leases("").await;
    let mut client = database.client().await;
    let mut transaction = client.transaction().await.unwrap();
    here.acquire_in(&mut transaction, "a").await.unwrap();
    let refused = force_release(&here, "a").await.unwrap_err().to_string();
    assert!(refused.contains("a transaction holds the lock"), "{refused}");
    let taken = here.try_acquire("a", LockOptions::new()).await.unwrap();
    assert!(taken.is_none(), "the transaction still holds it");
    transaction.commit().await.unwrap();
    assert!(!force_release(&here, "a").await.unwrap());
    acquire(&here, "a").await.release().await.unwrap();
}
