//! Acquiring, waiting for and releasing session locks.

use std::time::Duration;

use lockattr::store::PostgresSessionStore;
use lockattr::{Error, LockManager, LockOptions};
use tokio::time::{Instant, sleep, timeout};

use super::{Database, acquire, is_free};
use lockattr_tests::{in_time, with_query};

/// Red without: `hashtextextended(name, 0)`, which must never change.
#[tokio::test]
async fn any_client_can_acquire_the_same_lock_with_one_statement() {
    let database = Database::new().await;
    let (manager, client) = (database.sessions("").await, database.client().await);
    let [lock, unlock, try_lock] = ["", "un", "try_"].map(|kind| match kind {
        "un" => "select pg_advisory_unlock(hashtextextended('lock:product:42', 0))",
        "try_" => "select pg_try_advisory_lock(hashtextextended('lock:product:42', 0))",
        _ => "select pg_advisory_lock(hashtextextended('lock:product:42', 0)) is not null",
    });
    client.query_one(lock, &[]).await.unwrap();
    let outcome = manager.try_acquire("product:42", LockOptions::new()).await.unwrap();
    assert!(outcome.is_none(), "a lock of another program was acquired");
    client.query_one(unlock, &[]).await.unwrap();
    let guard = acquire(&manager, "product:42").await;
    let had: bool = client.query_one(try_lock, &[]).await.unwrap().get(0);
    assert!(!had, "a lock of ours was acquired");
    guard.release().await.unwrap();
    let had: bool = client.query_one(try_lock, &[]).await.unwrap().get(0);
    assert!(had);
}

#[tokio::test]
async fn it_keeps_nothing_in_the_database() {
    let database = Database::new().await;
    let manager = database.sessions("").await;
    acquire(&manager, "a").await.release().await.unwrap();
    let ours = "select count(*) from pg_class where relname like 'lockattr%'";
    let tables: i64 = database.client().await.query_one(ours, &[]).await.unwrap().get(0);
    assert_eq!(tables, 0);
    database.nobody_locks().await;
}

/// Red without: `Store::refuses_claim` in the manager. Then it would look like an outage.
#[tokio::test]
async fn permits_and_invalid_keys_are_refused_by_acquire() {
    let database = Database::new().await;
    let manager = database.sessions("").await;
    let options = LockOptions::new().permits(2);
    let refused = manager.acquire("a", options).await.map(|_| ());
    let Err(Error::InvalidOptions(sentence)) = refused else { panic!("{refused:?}") };
    assert!(sentence.contains("lock=session") && sentence.contains("lock=lease"), "{sentence}");
    let refused = manager.acquire("a\0b", LockOptions::new()).await.map(|_| ());
    assert!(matches!(refused, Err(Error::InvalidKey(_))), "{refused:?}");
}

#[test]
fn each_lock_kind_opens_its_own_urls() {
    PostgresSessionStore::open("postgres://h/db?lock=session").unwrap();
    for (url, says) in [
        ("postgres://h/db?lock=lease", "PostgresStore"),
        ("postgres://h/db?lock=row", "`lease` (the default) or `session`"),
    ] {
        let error = PostgresSessionStore::open(url).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let error = lockattr::store::PostgresStore::open("postgres://h/db?lock=session").unwrap_err();
    assert!(error.to_string().contains("PostgresSessionStore"), "{error}");
}

/// Red without: giving up the request of a dropped acquire.
#[tokio::test]
async fn an_acquire_that_is_dropped_in_the_queue_leaves_nothing() {
    let database = Database::new().await;
    let (holder, other) = (database.sessions("").await, database.sessions("").await);
    let guard = acquire(&holder, "a").await;
    for _ in 0..3 {
        let wait = timeout(Duration::from_millis(300), other.acquire("a", LockOptions::new()));
        assert!(wait.await.is_err(), "granted twice");
        database.waiting(0).await;
    }
    guard.ensure_held().unwrap();
    guard.release().await.unwrap();
    database.nobody_locks().await;
    assert!(is_free(&other, "a").await);
    acquire(&other, "a").await.release().await.unwrap();
}

/// The acquire is dropped at any point: before, while and after the server grants it.
///
/// Red without: the release after the request, on the same connection.
#[tokio::test]
async fn an_acquire_that_is_dropped_anywhere_leaves_nothing() {
    let database = Database::new().await;
    let (one, two) = (database.sessions("").await, database.sessions("").await);
    for micros in (0..40).map(|n| n * 150) {
        let guard = acquire(&one, "a").await;
        let asks = timeout(Duration::from_micros(micros), two.acquire("a", LockOptions::new()));
        let (acquired, released) = tokio::join!(asks, async {
            sleep(Duration::from_micros(micros / 2)).await;
            guard.release().await
        });
        released.unwrap();
        drop(acquired);
    }
    database.nobody_locks().await;
}

/// The waiter does not poll: the server grants the lock and replies.
#[tokio::test]
async fn a_waiter_has_the_lock_at_once() {
    let database = Database::new().await;
    let (one, two) = (database.sessions("").await, database.sessions("").await);
    for _ in 0..10 {
        let guard = acquire(&one, "a").await;
        let waiter = tokio::spawn({
            let two = two.clone();
            async move { acquire(&two, "a").await }
        });
        database.waiting(1).await;
        guard.release().await.unwrap();
        in_time(waiter).await.unwrap().release().await.unwrap();
    }
}

/// Red without: the name of the session.
#[tokio::test]
async fn a_holder_in_another_process_is_named_by_its_connection() {
    let database = Database::new().await;
    let url = with_query(&database.url, "lock=session");
    let build = |name: &str| LockManager::builder().url(&url).service(name).build().unwrap();
    let (one, two) = (build("orders"), build("stock"));
    let _guard = acquire(&one, "a").await;
    let holder = two.holder("a").await.unwrap().expect("held");
    assert_eq!(holder.service.as_deref(), Some("orders"));
    assert_eq!(holder.process, Some(std::process::id()));
    let refused = two.try_acquire("a", LockOptions::new()).await.unwrap();
    assert!(refused.is_none(), "two holders");
}

#[tokio::test]
async fn hold_at_least_keeps_it_taken_by_this_process() {
    let database = Database::new().await;
    let (one, two) = (database.sessions("").await, database.sessions("").await);
    let began = Instant::now();
    let least = Duration::from_secs(1);
    let guard = one.acquire("a", LockOptions::new().hold_at_least(least)).await.unwrap();
    guard.release().await.unwrap();
    assert!(!is_free(&two, "a").await || began.elapsed() > least);
    acquire(&two, "a").await.release().await.unwrap();
    assert!(began.elapsed() + Duration::from_millis(20) >= least, "after {:?}", began.elapsed());
}

/// No renewal comes, but the process lives, so the server would keep the lock forever.
#[tokio::test]
async fn a_lease_that_is_not_renewed_ends_though_its_connection_is_alive() {
    let database = Database::new().await;
    let (one, two) = (database.sessions("").await, database.sessions("").await);
    let short = LockOptions::new().ttl(Duration::from_millis(300)).renew(false);
    let guard = one.acquire("a", short).await.unwrap();
    guard.lost().await;
    acquire(&two, "a").await.release().await.unwrap();
    drop(guard);
    database.nobody_locks().await;
}
