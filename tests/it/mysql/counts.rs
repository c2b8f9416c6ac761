//! Fencing tokens only grow, whatever happens to the counter and the clock.

use lockattr::{Error, FencingToken, LockManager, LockOptions};

use lockattr_tests::{Engine, MariaDb, eventually, with_query};
use mysql_async::prelude::Queryable;

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
    try_next(manager).await.unwrap().expect("it is free")
}

async fn try_next(manager: &LockManager) -> Result<Option<FencingToken>, Error> {
    // Not `acquire`, which would try again after an error.
    let Some(guard) = manager.try_acquire("a", LockOptions::new()).await? else { return Ok(None) };
    let token = guard.fencing_token();
    guard.release().await?;
    Ok(Some(token))
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

/// More were drawn than a session has reserved. It must not return a number that another session
/// may return, too.
///
/// Red without: the limit in `reserved`, or `GREATEST` in `session_numbers.sql`.
#[tokio::test]
async fn session_locks_have_growing_tokens_when_the_reserved_numbers_are_used_up() {
    let database = Database::new().await;
    let (one, other) =
        (database.manager("lock=session").await, database.manager("lock=session").await);
    let mut last = next(&one).await;
    let mut grows = async |manager: &LockManager| {
        let token = next(manager).await;
        assert!(token > last, "{token} comes after {last}");
        last = token;
    };
    grows(&other).await;
    // More than half of what is reserved, and then more than the clock would reserve meanwhile.
    for drawn in [600_000, 30_000_000] {
        database.execute(&format!("DO BENCHMARK({drawn}, UUID_SHORT())")).await;
        for manager in [&one, &other, &one] {
            grows(manager).await;
        }
        grows(&database.manager("lock=session").await).await;
    }
    // The server before this one had a clock that was ahead.
    let before = format!(
        "UPDATE lockattr_v2_session_numbers SET first = 18446744073709551615, last = last + {HOUR}"
    );
    database.execute(&before).await;
    let after = next(&database.manager("lock=session").await).await;
    assert!(after.get() >= last.get() + (HOUR.cast_unsigned() << 10), "{after} after {last}");
    database.holds_nothing().await;
}

/// The row was lost while the server and its sessions live on. They learn of it with the next
/// heartbeat.
///
/// Red without: `are_valid`.
#[tokio::test]
async fn session_locks_have_growing_tokens_again_after_their_row_is_lost() {
    // A heartbeat may miss the moment without a row, and then finds a new one.
    let row = "lockattr_v2_session_numbers";
    let new = format!("UPDATE {row} SET first = 0, base = 0, last = 0");
    for lost in [format!("DELETE FROM {row}"), new] {
        let database = Database::new().await;
        let query = "lock=session&heartbeat=100ms";
        let (one, other) = (database.manager(query).await, database.manager(query).await);
        next(&one).await;
        next(&other).await;
        database.execute(&lost).await;
        let third = database.manager(query).await;
        // A manager may have several sessions, and other tests draw numbers, too. So the tokens of an old
        // session are smaller, or greater, than those of a new one. A heartbeat that learns of the
        // new rule ends the session, perhaps under such a request.
        let grow = async || {
            let mut last = next(&third).await;
            for manager in [&one, &other, &third] {
                match try_next(manager).await {
                    Ok(Some(token)) if token > last => last = token,
                    _ => return false,
                }
            }
            true
        };
        eventually("all have read the new rule", grow).await;
        database.holds_nothing().await;
    }
}

/// The server was demoted, and keeps its connections. Others may lock on the new primary.
///
/// Red without: `read_only` in the statement.
#[tokio::test]
async fn a_server_that_is_read_only_grants_no_session_lock() {
    let server = MariaDb::start().await;
    let manager = LockManager::connect(&server.url_with("lock=session")).await.unwrap();
    next(&manager).await;
    server.execute("mysql", "SET GLOBAL read_only = 1").await;
    let refused = manager.try_acquire("a", LockOptions::new()).await.unwrap_err();
    assert!(refused.to_string().contains("name the primary"), "{refused}");
    server.execute("mysql", "SET GLOBAL read_only = 0").await;
    // What the refused request has locked is released in the background.
    let grants = async || matches!(try_next(&manager).await, Ok(Some(_)));
    eventually("it grants the lock again", grants).await;
}

/// A server that restarts in the second of its start begins to count with the same number again. So it
/// reserves none in that second.
///
/// Red without: `SLEEP` in `session_numbers.sql`.
#[tokio::test]
async fn no_session_number_is_reserved_in_the_second_of_a_start() {
    // No other client draws so many numbers there that they reach the next second.
    let server = MariaDb::start().await;
    let name = server.database().await;
    let url = with_query(&server.url_of(&name), "lock=session");
    next(&LockManager::connect(url).await.unwrap()).await;
    let mut cli = server.cli(&name).await;
    // For this session, the time stands still in that second. `SYSDATE` goes on.
    cli.query_drop("SET timestamp = (UUID_SHORT() >> 24) & 4294967295").await.unwrap();
    let now = "SELECT UNIX_TIMESTAMP(SYSDATE())";
    for _ in 0..3 {
        let began: Option<u64> = cli.query_first(now).await.unwrap();
        cli.query_drop("CALL lockattr_v2_session_numbers()").await.unwrap();
        assert!(cli.query_first::<u64, _>(now).await.unwrap() > began, "in the same second");
    }
}

/// The server restarts at once.
#[tokio::test]
async fn session_locks_have_growing_tokens_when_the_server_restarts() {
    let server = MariaDb::start().await;
    let manager = LockManager::connect(&server.url_with("lock=session")).await.unwrap();
    let before = next(&manager).await;
    server.restart().await;
    let after = async || match manager.acquire("a", LockOptions::new()).await {
        Ok(guard) => Some(guard.fencing_token()),
        Err(_) => None,
    };
    let mut token = None;
    let reconnects = async || {
        token = after().await;
        token.is_some()
    };
    eventually("the store connects again", reconnects).await;
    assert!(token > Some(before), "{token:?} comes after {before}");
}
