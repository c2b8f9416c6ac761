//! Fencing tokens that grow, whatever happens to the clock and the sequence.

use super::*;

async fn token(manager: &LockManager) -> u64 {
    let guard = acquire(manager, "a").await;
    let token = guard.fencing_token().get();
    guard.release().await.unwrap();
    token
}

/// A sequence ahead of the clock has the same effect on tokens as a clock that went back.
#[tokio::test]
async fn tokens_grow_when_the_clock_goes_back() {
    let database = Database::new().await;
    let manager = database.manager("ttl=20s").await;
    let before = token(&manager).await;
    let hour =
        "select setval('lockattr_fence', (select last_value from lockattr_fence) + 3600000000)";
    let ahead = database.number(hour).await;
    let mut last = token(&manager).await;
    assert!(last > before && last >> 10 == u64::try_from(ahead).unwrap() + 1);
    for _ in 0..3 {
        let next = token(&manager).await;
        assert!(next > last);
        last = next;
    }
    database.has_nothing_left().await;
}

/// A restored backup, or a standby that did not have the last tokens.
#[tokio::test]
async fn tokens_grow_when_the_database_has_forgotten_the_last_of_them() {
    let database = Database::new().await;
    let manager = database.manager("ttl=20s").await;
    let mut before = 0;
    for _ in 0..5 {
        before = token(&manager).await;
    }
    database.run("select setval('lockattr_fence', 1)").await;
    let after = token(&manager).await;
    assert!(after > before, "{after} after {before}");
    database.has_nothing_left().await;
}

/// Red without: the advisory lock in `lockattr_count_1` (intermittently).
#[tokio::test]
async fn no_token_is_issued_twice_under_concurrency() {
    let database = Database::new().await;
    drop(database.manager("ttl=20s").await);
    let count = "select lockattr_count_1() from generate_series(1, 2000)";
    let counts = (0..4).map(async |_| {
        let client = database.server.client_of(&database.name).await;
        client.query(count, &[]).await.unwrap().iter().map(|row| row.get(0)).collect::<Vec<i64>>()
    });
    let counts = futures_util::future::join_all(counts).await;
    for counts in &counts {
        assert!(counts.is_sorted_by(|one, next| one < next), "a token after a greater one");
    }
    let all: std::collections::HashSet<_> = counts.iter().flatten().collect();
    assert_eq!(all.len(), 8000);
    // The advisory lock is released as well.
    let locks = "select count(*) from pg_locks where locktype = 'advisory' and objsubid = 1
        and database = (select oid from pg_database where datname = current_database())
        and (classid::bigint << 32 | objid::bigint) = lockattr_number_1('')";
    assert_eq!(database.number(locks).await, 0);
}
