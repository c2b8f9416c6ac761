//! A key that is done: its row, and databases whose functions are of a version without marks.

use lockattr::LockManager;
use lockattr::store::{PostgresStore, ReleaseOutcome};

use super::Database;
use crate::marks::{DAY, Process, asks_again_now};
use lockattr_tests::for_store;

impl Database {
    fn process(&self) -> Process {
        Process::on(PostgresStore::open(&for_store(&self.url_with(""))).unwrap())
    }
}

/// Red without: the token or the value in `mark_done.sql`.
#[tokio::test]
async fn the_row_of_a_done_lock_has_a_token_that_no_claim_has() {
    let database = Database::new().await;
    let process = database.process();
    let claim = process.holder_of("nightly").await;
    assert_eq!(process.mark(&claim, DAY).await.unwrap(), ReleaseOutcome::Released);
    let token = format!("encode(token, 'hex') = '{}' || '{}'", "646f6e65", claim.token());
    let value = format!("convert_from(value, 'UTF8') = '{} done=1'", claim.value());
    let ends = "ends between now() + interval '23 hours' and now() + interval '24 hours'";
    let rows = format!("select count(*) from lockattr_locks where {token} and {value} and {ends}");
    assert_eq!(database.number(&rows).await, 1);
    assert_eq!(database.number("select count(*) from lockattr_locks").await, 1);
    // The statements of versions without marks name the claim's own token.
    for statement in [
        "delete from lockattr_locks where token = '\\x{}' and waiting = 0",
        "update lockattr_locks set ends = now() + interval '1 year' where token = '\\x{}'",
    ] {
        database.run(&statement.replace("{}", &claim.token().to_string())).await;
    }
    assert_eq!(database.number(&rows).await, 1);
}

/// Red without: `mark_done_2` in `IS_INSTALLED`.
#[tokio::test]
async fn a_database_of_a_version_without_marks_gets_the_function_and_keeps_its_locks() {
    let database = Database::new().await;
    let before = database.manager("").await;
    let guard = before.acquire("held", lockattr::LockOptions::new()).await.unwrap();
    database.run("drop function lockattr_mark_done_3, lockattr_sweep_3").await;

    let process = database.process();
    let claim = process.holder_of("nightly").await;
    assert_eq!(process.mark(&claim, DAY).await.unwrap(), ReleaseOutcome::Released);
    // The process of the earlier version goes on, and sees a lock that is held.
    guard.ensure_held().unwrap();
    let other = before.try_acquire("nightly", lockattr::LockOptions::new()).await.unwrap();
    assert!(other.is_none(), "a done key was granted");
    guard.release().await.unwrap();
    assert!(LockManager::connect(database.url_with("")).await.is_ok());
}

/// Red without: `pg_notify` in `mark_done.sql`.
#[tokio::test]
async fn a_waiter_for_several_keys_is_notified_and_keeps_its_place() {
    let database = Database::new().await;
    let process = database.process();
    let claim = process.holder_of("nightly").await;
    let both = process.claim(&["hourly", "nightly"]);
    let notifications = process.enqueue(&both).await;
    process.mark(&claim, DAY).await.unwrap();
    asks_again_now(&notifications).await;
    let entries = "select count(*) from lockattr_queue";
    assert_eq!(database.number(entries).await, 2);
    assert!(process.refused(&both).await.expect("held").done);
    assert_eq!(process.release(&both).await, ReleaseOutcome::NotHeld);
    assert_eq!(database.number(entries).await, 0);
    assert!(process.force_release("nightly").await);
    database.has_nothing_left().await;
}
