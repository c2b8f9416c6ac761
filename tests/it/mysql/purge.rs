//! A process that waits does not keep the server from removing old versions of rows.

use lockattr::LockOptions;
use lockattr_tests::{MariaDb, eventually, with_query};

use super::Database;

/// How many transactions have old versions that the server has not removed.
async fn history(database: &Database) -> i64 {
    let metric = "SELECT CAST(COUNT AS SIGNED) FROM information_schema.innodb_metrics \
                  WHERE name = 'trx_rseg_history_len'";
    database.number(metric).await
}

/// One process waits for a lock while another one acquires and releases a second lock.
///
/// Red without: `sleep.sql` (a query that looks for notifications and sleeps in one statement keeps
/// its view of all rows for ten seconds).
#[tokio::test]
async fn a_waiter_does_not_keep_old_versions_of_rows() {
    for form in ["lease", "session"] {
        // A server of its own: other tests make history too.
        let server = MariaDb::with(&[]).await;
        let name = server.database().await;
        let url = with_query(&server.url_of(&name), &format!("lock={form}&heartbeat=1h"));
        let database = Database { server: Box::leak(Box::new(server)), name };
        let connect = async || lockattr::LockManager::connect(&url).await.unwrap();
        let (holder, waiter) = (connect().await, connect().await);
        let held = holder.acquire("a", LockOptions::new()).await.unwrap();
        let next = tokio::spawn(async move {
            let guard = waiter.acquire("a", LockOptions::new()).await.unwrap();
            guard.release().await.unwrap();
        });
        let waits = "SELECT COUNT(*) FROM information_schema.processlist \
                     WHERE state = 'User lock' AND db = DATABASE()";
        let all = if form == "lease" { 2 } else { 1 };
        eventually("it waits", async || database.number(waits).await == all).await;
        // A sleeping statement that has read a row is a transaction.
        let views = "SELECT COUNT(*) FROM information_schema.innodb_trx AS trx \
                     JOIN information_schema.processlist AS session ON session.id = trx.trx_mysql_thread_id \
                     WHERE session.state = 'User lock'";
        assert_eq!(database.number(views).await, 0, "{form}");
        let busy = connect().await;
        for _ in 0..500 {
            busy.acquire("hot", LockOptions::new()).await.unwrap().release().await.unwrap();
        }
        // The server removes them in the background. MySQL reports each removal only after a long while.
        if !MariaDb::runs_mysql() {
            let removed = async || history(&database).await < 100;
            eventually("removed", removed).await;
        }
        assert_eq!(database.number(views).await, 0, "{form}");
        held.release().await.unwrap();
        next.await.unwrap();
        database.server.kill();
    }
}
