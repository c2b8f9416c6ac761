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
    let manager = database.manager("").await;
    let before = token(&manager).await;
    let hour =
        "select setval('lockattr_counter', (select last_value from lockattr_counter) + 3600000000)
             + (select last_value from lockattr_counter_base)";
    let ahead = database.number(hour).await;
    let mut last = token(&manager).await;
    // Its sessions raise the counter.
    let next = database.manager("").await;
    assert!(last > before && last >> 10 == u64::try_from(ahead).unwrap() + 1);
    for manager in [&next, &manager, &next] {
        let next = token(manager).await;
        assert!(next > last);
        last = next;
    }
    database.has_nothing_left().await;
}

/// A restored backup, or a standby that did not have the last tokens.
#[tokio::test]
async fn tokens_grow_when_the_database_has_forgotten_the_last_of_them() {
    let database = Database::new().await;
    let manager = database.manager("").await;
    let mut before = 0;
    for _ in 0..5 {
        before = token(&manager).await;
    }
    // Such a database has no session from before.
    database
        .run(
            "select setval('lockattr_counter', 1), setval('lockattr_counter_base', 1);
             select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and pid <> pg_backend_pid()",
        )
        .await;
    let works = async || manager.try_acquire("b", LockOptions::new()).await.is_ok();
    eventually("it is connected again", works).await;
    let after = token(&manager).await;
    assert!(after > before, "{after} after {before}");
    database.has_nothing_left().await;
}

/// Sessions begin, and raise the counter, while others draw from it.
///
/// Red without: the advisory lock in `lockattr_raise_counter_3`, or the comparison behind it.
#[tokio::test]
async fn no_token_is_issued_twice_under_concurrency() {
    let database = Database::new().await;
    drop(database.manager("").await);
    let count = "select lockattr_count_3() from generate_series(1, 20)";
    let raise = "select lockattr_raise_counter_3()";
    let counts = (0..4).map(async |_| {
        let client = database.server.client_of(&database.name).await;
        let mut counts = Vec::new();
        for _ in 0..100 {
            client.batch_execute(raise).await.unwrap();
            let rows = client.query(count, &[]).await.unwrap();
            counts.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
        }
        counts
    });
    let counts = futures_util::future::join_all(counts).await;
    for counts in &counts {
        assert!(counts.is_sorted_by(|one, next| one < next), "a token after a greater one");
    }
    let all: std::collections::HashSet<_> = counts.iter().flatten().collect();
    assert_eq!(all.len(), 8000);
}
