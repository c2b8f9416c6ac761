//! A key that is done: its row, and databases whose procedures are of a version without marks.

use lockattr::LockOptions;
use lockattr::store::{MysqlStore, ReleaseOutcome};
use mysql_async::prelude::Queryable;

use super::Database;
use crate::marks::{DAY, Process, asks_again_now};
use lockattr_tests::for_store;

impl Database {
    fn process(&self) -> Process {
        Process::on(MysqlStore::open(&for_store(&self.url(""))).unwrap())
    }
}

/// Red without: the token or the value in `mark_done.sql`.
#[tokio::test]
async fn the_row_of_a_done_lock_has_a_token_that_no_claim_has() {
    let database = Database::new().await;
    let process = database.process();
    let claim = process.holder_of("nightly").await;
    assert_eq!(process.mark(&claim, DAY).await.unwrap(), ReleaseOutcome::Released);
    let token = claim.token().to_string();
    let left = "ends - TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6))";
    let rows = format!(
        "SELECT COUNT(*) FROM lockattr_v2_locks WHERE token = 'done{}' AND value = '{} done=1' \
         AND mode = 'x' AND listener = '' AND {left} BETWEEN 82800000000 AND 86400000000",
        &token[4..],
        claim.value()
    );
    assert_eq!(database.number(&rows).await, 1);
    assert_eq!(database.number("SELECT COUNT(*) FROM lockattr_v2_locks").await, 1);
    // The statements of versions without marks name the claim's own token.
    for statement in [
        "DELETE FROM lockattr_v2_locks WHERE token = '{}' AND waiting = 0",
        "UPDATE lockattr_v2_locks SET ends = ends + 1000000 WHERE token = '{}'",
    ] {
        database.execute(&statement.replace("{}", &token)).await;
    }
    assert_eq!(database.number(&rows).await, 1);
}

/// Red without: the new name in `installed.sql`.
#[tokio::test]
async fn a_database_of_a_version_without_marks_gets_the_procedure_and_keeps_its_locks() {
    let database = Database::new().await;
    let before = database.manager("").await;
    let guard = before.acquire("held", LockOptions::new()).await.unwrap();
    // MySQL prepares no such statements.
    let mut cli = database.server.cli(&database.name).await;
    for statement in [
        "DROP PROCEDURE lockattr_v2_mark_done",
        "DROP PROCEDURE lockattr_v2_sweep_2",
        "DROP PROCEDURE lockattr_v2_start_3",
        "DROP TABLE lockattr_v2_sweep",
        // What each connection of that version calls.
        "CREATE PROCEDURE lockattr_v2_start() SQL SECURITY INVOKER DO 0",
    ] {
        cli.query_drop(statement).await.unwrap();
    }

    let process = database.process();
    let claim = process.holder_of("nightly").await;
    assert_eq!(process.mark(&claim, DAY).await.unwrap(), ReleaseOutcome::Released);
    // The process of the earlier version goes on, and sees a lock that is held.
    guard.ensure_held().unwrap();
    let other = before.try_acquire("nightly", LockOptions::new()).await.unwrap();
    assert!(other.is_none(), "a done key was granted");
    guard.release().await.unwrap();
}

/// Red without: `lockattr_v2_notify` in `mark_done.sql`.
#[tokio::test]
async fn a_waiter_for_several_keys_is_notified_and_keeps_its_place() {
    let database = Database::new().await;
    let process = database.process();
    let claim = process.holder_of("nightly").await;
    let both = process.claim(&["hourly", "nightly"]);
    let notifications = process.enqueue(&both).await;
    process.mark(&claim, DAY).await.unwrap();
    asks_again_now(&notifications).await;
    let entries = "SELECT COUNT(*) FROM lockattr_v2_queue";
    assert_eq!(database.number(entries).await, 2);
    assert!(process.refused(&both).await.expect("held").done);
    assert_eq!(process.release(&both).await, ReleaseOutcome::NotHeld);
    assert_eq!(database.number(entries).await, 0);
    assert!(process.force_release("nightly").await);
    database.holds_nothing().await;
}
