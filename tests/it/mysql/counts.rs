//! Fencing tokens only grow, whatever happens to the counter and the clock.

use lockattr::{FencingToken, LockManager, LockOptions};

use lockattr_tests::MariaDb;

use super::Database;

/// An hour in microseconds, which is the unit of the counter.
const HOUR: i64 = 3_600_000_000;

/// Sets the counter to what it would be if the server's clock had been an hour ahead.
async fn set_ahead(database: &Database) {
    if MariaDb::runs_mysql() {
        let ahead = format!("UPDATE lockattr_v2_numbers SET last = last + {HOUR}");
        return database.execute(&ahead).await;
    }
    let clock = "SELECT TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6))";
    let ahead = database.number(clock).await + HOUR;
    database.execute(&format!("ALTER SEQUENCE lockattr_v2_numbers RESTART {ahead}")).await;
}

async fn next(manager: &LockManager) -> FencingToken {
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    token
}

/// A backup from before the first lock was restored.
#[tokio::test]
async fn a_lost_counter_continues_from_the_clock() {
    let database = Database::new().await;
    let manager = database.manager("").await;
    let before = next(&manager).await;
    let lost = match MariaDb::runs_mysql() {
        true => "DELETE FROM lockattr_v2_numbers",
        false => "ALTER SEQUENCE lockattr_v2_numbers RESTART 1",
    };
    database.execute(lost).await;
    // A restored server has no connection from before.
    drop(manager);
    let manager = database.manager("").await;
    assert!(next(&manager).await > before);
    database.holds_nothing().await;
}

/// The counter has the time that the server's clock showed before it went back.
#[tokio::test]
async fn a_clock_that_goes_back_does_not_lower_the_counter() {
    let database = Database::new().await;
    let manager = database.manager("").await;
    let before = next(&manager).await;
    set_ahead(&database).await;
    // Less a second: a sequence is set by the clock of this moment.
    let hour = 3_599_000_000 << 10;
    let after = next(&manager).await;
    assert!(after.get() >= before.get() + hour, "{after} is not an hour after {before}");
    assert!(next(&manager).await > after);
    // A new connection raises the counter to the clock, and never lowers it.
    let other = database.manager("").await;
    assert!(next(&other).await > after);
    database.holds_nothing().await;
}

/// Locks acquired together have one fencing token, which is greater than the last token of each.
///
/// Red without: the second loop in `count.sql`.
#[tokio::test]
async fn locks_acquired_together_raise_the_counter_of_each() {
    let database = Database::new().await;
    let manager = database.manager("").await;
    next(&manager).await;
    set_ahead(&database).await;
    let keys: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
    let guard = manager.acquire_all(&keys, LockOptions::new()).await.unwrap();
    let together = guard.fencing_token();
    guard.release().await.unwrap();
    for key in &keys {
        let guard = manager.acquire(key, LockOptions::new()).await.unwrap();
        assert!(guard.fencing_token() > together, "{key}");
        guard.release().await.unwrap();
    }
    database.holds_nothing().await;
}
