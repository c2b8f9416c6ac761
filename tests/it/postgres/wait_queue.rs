//! Waiting sends no statements, and waiters that are gone block no other waiter.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use lockattr_tests::{Node, node};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::*;

/// Counts the queued waiters that a live connection listens for.
const HEARD: &str = "select count(*) from lockattr_queue join pg_locks on locktype = 'advisory'
    and granted and listener = (classid::bigint << 32) | objid::bigint";

/// The next renewal is due after 100 s, and the next heartbeat after 60 s. Queued waiters ask by
/// themselves after 15 s, so all of them join at once.
///
/// Red without: the pause of queued waiters while nothing is notified.
#[tokio::test]
async fn waiting_costs_no_statements_while_nothing_changes() {
    let database = Database::new().await;
    let query = "ttl=300s&wait=60s&heartbeat=60s";
    let first = database.manager(query).await;
    let holder = acquire(&first, "a").await;
    let managers = join_all((0..20).map(|_| database.manager(query))).await;
    let mut waiting = JoinSet::new();
    for manager in managers {
        waiting.spawn(async move { acquire(&manager, "a").await.release().await.unwrap() });
    }
    database.waiting(20).await;
    // A connection elsewhere reads when the last statement of each session began.
    let client = database.server.client().await;
    // A manager opens its second connection after the first, whose claim is queued by then.
    let quiet = "select count(*) >= 3 * 21 and bool_and(clock_timestamp() - query_start > '1 s')
        from pg_stat_activity where datname = $1 and backend_type = 'client backend'";
    eventually(SOON * 4, "all have been quiet for a second", async || {
        client.query_one(quiet, &[&database.name]).await.unwrap().get(0)
    })
    .await;
    let sessions = "select count(*), count(*) filter (where query_start > $2) from pg_stat_activity
        where datname = $1 and backend_type = 'client backend'";
    let now = client.query_one("select clock_timestamp()::text", &[]).await.unwrap();
    let statement = sessions.replace("$2", &format!("'{}'", now.get::<_, &str>(0)));
    sleep(Duration::from_secs(3)).await;
    let row = client.query_one(&statement, &[&database.name]).await.unwrap();
    let (there, asked): (i64, i64) = (row.get(0), row.get(1));
    // Each manager has two sessions that send requests and one that listens.
    assert!(there >= 3 * 21, "{there} sessions");
    assert_eq!(asked, 0, "sessions in which waiters sent a request");
    holder.release().await.unwrap();
    while let Some(worked) = waiting.join_next().await {
        worked.unwrap();
    }
    database.has_nothing_left().await;
}

#[tokio::test]
async fn heads_of_the_queue_that_were_killed_are_passed_over_at_once() {
    let database = Database::new().await;
    let manager = database.manager("ttl=60s&wait=60s").await;
    let holder = acquire(&manager, "a").await;
    let mut killed: Vec<Node> = Vec::new();
    for place in 1..=3 {
        let mut node = node!("lock", url = database.url_with("ttl=60s&wait=60s"));
        node.say("acquire a").await;
        killed.push(node);
        database.waiting(place).await;
    }
    let last = database.manager("ttl=60s&wait=60s").await;
    let last = tokio::spawn(async move { acquire(&last, "a").await });
    database.waiting(4).await;
    for mut node in killed {
        node.kill();
    }
    // Until the server notices their end, they count as alive.
    eventually(SOON, "one is notified", async || database.number(HEARD).await == 1).await;
    let started = Instant::now();
    holder.release().await.unwrap();
    let guard = last.await.unwrap();
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    guard.release().await.unwrap();
    database.has_nothing_left().await;
}

/// Claims for two of a few keys each, in any order, from several managers, beside claims for one
/// key.
#[tokio::test]
async fn overlapping_claims_never_deadlock() {
    let database = Database::new().await;
    let inside = Arc::new([const { AtomicUsize::new(0) }; 4]);
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let manager = database.manager("ttl=20s&wait=60s&linger=0s").await;
        let inside = inside.clone();
        tasks.spawn(async move {
            for round in 0..25 {
                let (one, other) = ((n + round) % 4, (n * 3 + round * 2 + 1) % 4);
                let names = [format!("key {one}"), format!("key {other}")];
                let guard = manager.acquire_all(&names, LockOptions::new()).await.unwrap();
                let keys: BTreeSet<usize> = [one, other].into();
                for &key in &keys {
                    assert_eq!(inside[key].fetch_add(1, Ordering::SeqCst), 0, "two at once");
                }
                tokio::task::yield_now().await;
                for key in keys {
                    inside[key].fetch_sub(1, Ordering::SeqCst);
                }
                guard.release().await.unwrap();
            }
        });
    }
    while let Some(worked) = tasks.join_next().await {
        worked.unwrap();
    }
    database.has_nothing_left().await;
    // The server counts deadlocks once the sessions are idle.
    sleep(Duration::from_secs(1)).await;
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    assert_eq!(database.number(deadlocks).await, 0, "deadlocks");
}

#[tokio::test]
async fn a_waiter_outlives_the_end_of_every_session() {
    let database = Database::new().await;
    let first = database.manager("ttl=60s&wait=60s").await;
    let holder = acquire(&first, "a").await;
    let next = database.manager("ttl=60s&wait=60s").await;
    let next = tokio::spawn(async move { acquire(&next, "a").await });
    database.waiting(1).await;
    database
        .run(
            "select pg_terminate_backend(pid) from pg_stat_activity
                where datname = current_database() and pid <> pg_backend_pid()",
        )
        .await;
    // The waiter keeps its place, and a connection listens for it again.
    eventually(SOON, "subscribed again", async || database.number(HEARD).await == 1).await;
    holder.release().await.unwrap();
    let guard = tokio::time::timeout(SOON, next).await.expect("notified").unwrap();
    guard.release().await.unwrap();
    database.has_nothing_left().await;
}
