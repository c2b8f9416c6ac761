//! How many connections a process has.

use super::*;

impl Database {
    /// Waits until as many sessions of lockattr are in the database, and no more.
    async fn has_sessions(&self, expected: i64) {
        let count = "select count(*) from pg_stat_activity
            where datname = current_database() and application_name not in ('', 'psql')";
        let there = async || self.number(count).await == expected;
        eventually(&format!("{expected} sessions"), there).await;
    }
}

/// The probes for a pooler have gone by then.
#[tokio::test]
async fn a_store_has_its_connections_and_one_more_from_the_first_wait_on() {
    let database = Database::new().await;
    for connections in [1, 3] {
        let query = format!("connections={connections}");
        let (one, other) = (database.manager(&query).await, database.manager(&query).await);
        for key in 0..20 {
            acquire(&one, &format!("{key}")).await.release().await.unwrap();
        }
        database.has_sessions(2 * connections).await;
        let held = acquire(&one, "a").await;
        let waits = tokio::spawn(async move {
            acquire(&other, "a").await.release().await.unwrap();
            other
        });
        database.waiting(1).await;
        database.has_sessions(2 * connections + 1).await;
        held.release().await.unwrap();
        let other = waits.await.unwrap();
        drop((one, other));
        database.has_sessions(0).await;
    }
}

#[tokio::test]
async fn a_store_with_session_locks_has_one_more_for_each_claim_that_waits() {
    let database = Database::new().await;
    let query = "connections=1&lock=session&max_sessions=2";
    let (one, other) = (database.manager(query).await, database.manager(query).await);
    let held = [acquire(&one, "a").await, acquire(&one, "b").await, acquire(&one, "c").await];
    database.has_sessions(2).await;
    let waits = ["a", "b", "c"].map(|key| {
        let other = other.clone();
        tokio::spawn(async move { acquire(&other, key).await.release().await.unwrap() })
    });
    // The third waits in its process.
    database.has_sessions(2 + 2).await;
    for held in held {
        held.release().await.unwrap();
    }
    for waits in waits {
        waits.await.unwrap();
    }
}
