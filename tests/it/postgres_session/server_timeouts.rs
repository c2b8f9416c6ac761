//! Time limits of the database, the role or the server, which must not end a lock or a wait.

use std::time::Duration;

use futures_util::future::join_all;
use lockattr::LockManager;
use lockattr_tests::{eventually, in_time, with_query};
use tokio::time::sleep;

use super::{Database, acquire, is_free};

/// Longer than the limits.
const LONGER: Duration = Duration::from_millis(1_500);

/// Whether one statement has waited for a lock since before the limit. Another one would be younger.
const STILL_WAITS: &str = "select exists (
    select from pg_locks join pg_stat_activity as session using (pid)
    where locktype = 'advisory' and not granted and datname = current_database()
        and query_start < clock_timestamp() - interval '1200 ms')";

#[expect(clippy::print_stderr, reason = "the log must say what was skipped")]
fn skipped(setting: &str) {
    eprintln!("NOT TESTED: `{setting}`, which this server does not have: set LOCKATTR_POSTGRES");
}

/// The limit holds until a session has replaced it, which may take longer on a busy machine.
async fn connects(url: &str) -> LockManager {
    let mut manager = None;
    let connects = async || {
        manager = LockManager::connect(url).await.ok();
        manager.is_some()
    };
    eventually("connected", connects).await;
    manager.unwrap()
}

/// Red without: any of these in the settings of either kind of session.
#[tokio::test]
async fn no_limit_of_the_database_ends_a_lock_or_a_wait() {
    let settings = [
        "statement_timeout",
        "lock_timeout",
        "idle_session_timeout",
        "idle_in_transaction_session_timeout",
        // Since version 17.
        "transaction_timeout",
    ];
    join_all(settings.map(async |setting| {
        let database = Database::new().await;
        let client = database.client().await;
        let known = "select exists (select from pg_settings where name = $1)";
        if !client.query_one(known, &[&setting]).await.unwrap().get::<_, bool>(0) {
            skipped(setting);
            return;
        }
        let name = &database.name;
        let set = format!("alter database {name} set {setting} = '1s'");
        client.batch_execute(&set).await.unwrap();
        for form in ["session", "lease"] {
            let url = with_query(&database.url, &format!("lock={form}&heartbeat=1h"));
            let (one, two) = (connects(&url).await, connects(&url).await);
            let guard = acquire(&one, "a").await;
            let waits = tokio::spawn({
                let two = two.clone();
                async move { acquire(&two, "a").await }
            });
            if form == "session" {
                database.waiting(1).await;
            } else {
                let queued = "select count(*) from lockattr_queue";
                let client = database.client().await;
                let queued =
                    async || client.query_one(queued, &[]).await.unwrap().get::<_, i64>(0) == 1;
                eventually("it is queued", queued).await;
            }
            // The limit itself has to pass.
            sleep(LONGER).await;
            guard.ensure_held().unwrap();
            if form == "session" {
                let same = client.query_one(STILL_WAITS, &[]).await.unwrap();
                assert!(same.get::<_, bool>(0), "{setting}: it lost its place in the queue");
            }
            guard.release().await.unwrap_or_else(|error| panic!("{setting}, {form}: {error}"));
            let next = in_time(waits).await.unwrap();
            sleep(LONGER).await;
            next.ensure_held().unwrap();
            assert!(!is_free(&one, "a").await, "{setting}, {form}");
            next.release().await.unwrap_or_else(|error| panic!("{setting}, {form}: {error}"));
            assert!(is_free(&one, "a").await, "{setting}, {form}");
        }
    }))
    .await;
}
