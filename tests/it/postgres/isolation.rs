//! The isolation level of a database or a role does not affect how our transactions read the
//! tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lockattr_tests::in_time;

use super::*;

const ROUNDS: usize = 25;

/// Returns the URLs of a role that sets an isolation level for all of its transactions, and of a
/// client that sets it itself.
async fn strict(database: &Database, isolation: &str) -> [String; 2] {
    let role = format!("strict_{}", database.name);
    let sets = format!("set default_transaction_isolation = '{isolation}'");
    database.run(&format!("create role {role} login superuser; alter role {role} {sets}")).await;
    let by_role = database.url.replace("lockattr@", &format!("{role}@"));
    let escaped = isolation.replace(' ', "%5C%20");
    let by_options = format!("options=-cdefault_transaction_isolation%3D{escaped}");
    let query = "linger=0s";
    [with_query(&by_role, query), with_query(&database.url, &format!("{by_options}&{query}"))]
}

/// A release that waits for a claim to join the queue must find it there.
#[tokio::test]
async fn sessions_see_what_was_committed_while_they_waited_whatever_the_role_has_set() {
    for isolation in ["repeatable read", "serializable"] {
        let database = Database::new().await;
        let urls = strict(&database, isolation).await;
        for (holds, waits) in [(0, 1), (1, 0)] {
            let (first, next) = (manager(&urls[holds]).await, manager(&urls[waits]).await);
            let holder = acquire(&first, "a").await;
            // Another client blocks the lock until both sessions have asked for it.
            let meddler = database.server.client_of(&database.name).await;
            let lock = "begin; select from lockattr_locks where name = 'lock:a' for update";
            meddler.batch_execute(lock).await.unwrap();
            let next = tokio::spawn(async move { acquire(&next, "a").await });
            block(&database, 1).await;
            let released = tokio::spawn(holder.release());
            block(&database, 2).await;
            meddler.batch_execute("commit").await.unwrap();
            released.await.unwrap().unwrap();
            in_time(next).await.unwrap().release().await.unwrap();
            database.has_nothing_left().await;
        }
    }
}

/// Waits until this many sessions wait for a row.
async fn block(database: &Database, count: i64) {
    let waits = "select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    eventually("they wait", async || database.number(waits).await == count).await;
}

/// Fifty hand-offs between two managers.
#[tokio::test]
async fn one_is_inside_at_a_time_whatever_the_role_has_set() {
    for isolation in ["repeatable read", "serializable"] {
        let database = Database::new().await;
        let counter = Arc::new(AtomicUsize::new(0));
        let workers = strict(&database, isolation).await.map(|url| {
            let counter = counter.clone();
            tokio::spawn(async move {
                let manager = manager(&url).await;
                for _ in 0..ROUNDS {
                    let guard = acquire(&manager, "a").await;
                    let count = counter.load(Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    counter.store(count + 1, Ordering::SeqCst);
                    guard.release().await.unwrap();
                }
            })
        });
        for worker in workers {
            in_time(worker).await.unwrap();
        }
        assert_eq!(counter.load(Ordering::SeqCst), 2 * ROUNDS, "{isolation}");
        database.has_nothing_left().await;
    }
}
