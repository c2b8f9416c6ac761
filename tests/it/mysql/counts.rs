//! Fencing tokens only grow, whatever happens to the counter and the clock.

use lockattr::{FencingToken, LockManager, LockOptions};

use super::Database;

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
    database.execute("DELETE FROM lockattr_fence").await;
    assert!(next(&manager).await > before);
    database.holds_nothing().await;
}

/// The counter has the time that the server's clock showed before it went back.
#[tokio::test]
async fn a_clock_that_goes_back_does_not_lower_the_counter() {
    let database = Database::new().await;
    let manager = database.manager("").await;
    let before = next(&manager).await;
    database.execute("UPDATE lockattr_fence SET last = last + 3600000000").await;
    let hour = 3_600_000_000 << 10;
    let after = next(&manager).await;
    assert!(after.get() >= before.get() + hour, "{after} is not an hour after {before}");
    assert!(next(&manager).await > after);
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
    database.execute("UPDATE lockattr_fence SET last = last + 3600000000").await;
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
