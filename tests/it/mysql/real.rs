//! MySQL itself, whichever server the other tests use: MariaDB has functions that MySQL has
//! dropped.
//!
//! `LOCKATTR_NEWEST_MYSQL` names the program. If it is not set, the test reports that and checks
//! nothing.

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{MariaDb, eventually, with_query};

#[expect(clippy::print_stderr, reason = "the log must say what was skipped")]
pub(super) async fn server_with(options: &[&str]) -> Option<MariaDb> {
    let server = MariaDb::newest_mysql(options).await;
    if server.is_none() {
        eprintln!("NOT TESTED: MySQL itself. Set LOCKATTR_NEWEST_MYSQL to a `mysqld`.");
    }
    server
}

/// Both lock forms create their tables, lock, hand off, and count.
#[tokio::test]
async fn mysql_itself_locks_with_leases_and_with_sessions() {
    let Some(server) = server_with(&[]).await else { return };
    let version = server.query::<String>("mysql", "SELECT VERSION()").await.remove(0);
    assert!(!version.contains("MariaDB"), "{version}");
    let line = "SELECT COUNT(*) FROM lockattr_v2_queue";
    let on_the_server = "SELECT COUNT(*) FROM information_schema.processlist \
                         WHERE state = 'User lock' AND db = DATABASE()";
    for (form, waiting) in [("lease", line), ("session", on_the_server)] {
        let name = format!("shop_{form}");
        server.execute("mysql", &format!("CREATE DATABASE {name}")).await;
        let url = server.url_of(&name);
        let url = with_query(&url, &format!("lock={form}"));
        let (here, there) =
            (LockManager::connect(&url).await.unwrap(), LockManager::connect(&url).await.unwrap());
        let first = here.acquire("a", LockOptions::new()).await.unwrap();
        assert!(there.try_acquire("a", LockOptions::new()).await.unwrap().is_none(), "{form}");
        let next =
            tokio::spawn(async move { there.acquire("a", LockOptions::new()).await.unwrap() });
        let waits = async || server.query::<i64>(&name, waiting).await == [1];
        eventually("it waits", waits).await;
        let token = first.fencing_token();
        first.release().await.unwrap();
        let next = next.await.unwrap();
        assert!(next.fencing_token() > token, "{form}: {} after {token}", next.fencing_token());
        next.release().await.unwrap();
        let counter = match form {
            "lease" => "SELECT COUNT(*) FROM lockattr_v2_numbers",
            _ => "SELECT COUNT(*) FROM lockattr_v2_session_numbers",
        };
        let counts = server.query::<i64>(&name, counter).await;
        assert_eq!(counts, [1], "{form}: one key has one counter");
        let empty = async || server.left_in(&name).await.is_empty();
        eventually("nothing is left", empty).await;
    }
}
