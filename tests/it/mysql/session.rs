//! `?lock=session`: locks that belong to connections.

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions, LostReason, Mode};
use lockattr_tests::{eventually, force_release, in_time, node};

use super::Database;
use crate::support::is_renewed;

async fn manager(database: &Database) -> LockManager {
    database.manager("lock=session").await
}

/// Returns the connections that hold one of our locks.
async fn holders(database: &Database) -> Vec<i64> {
    let lock = format!(
        "SELECT COALESCE(IS_USED_LOCK(CONCAT('lockattr:lock:', \
         LEFT(SHA2(CONCAT(DATABASE(), '/', 'lock:a'), 256), 50))), 0) FROM DUAL WHERE '{}' <> ''",
        database.name
    );
    let ids: Vec<i64> = database.server.query(&database.name, &lock).await;
    ids.into_iter().filter(|&id| id > 0).collect()
}

/// Waits until so many sessions wait for a lock.
async fn waits_on_the_server(database: &Database, count: i64) {
    let waiting = "SELECT COUNT(*) FROM information_schema.processlist \
                   WHERE state = 'User lock' AND db = DATABASE()";
    let there = async || database.number(waiting).await == count;
    eventually(&format!("{count} wait on the server"), there).await;
}

#[tokio::test]
async fn a_lock_whose_connection_is_ended_is_lost() {
    let database = Database::new().await;
    let (here, there) = (manager(&database).await, manager(&database).await);
    let guard = here.acquire("a", LockOptions::new()).await.unwrap();
    let [id] = holders(&database).await[..] else { panic!("the lock is free") };
    database.execute(&format!("KILL {id}")).await;
    let other = there.acquire("a", LockOptions::new()).await.unwrap();
    assert!(other.fencing_token() > guard.fencing_token());
    in_time(guard.lost()).await;
    let Err(Error::Lost { reason, .. }) = guard.ensure_held() else { panic!("held by two") };
    assert!(matches!(reason, LostReason::Taken | LostReason::Expired), "{reason}");
    drop(guard);
    other.ensure_held().unwrap();
    other.release().await.unwrap();
    let free = async || holders(&database).await.is_empty();
    eventually("the lock is free", free).await;
}

#[tokio::test]
async fn a_lock_is_held_for_longer_than_its_ttl() {
    let database = Database::new().await;
    let (here, there) = (manager(&database).await, manager(&database).await);
    let options = LockOptions::new().ttl(Duration::from_secs(15));
    let guard = here.acquire("a", options).await.unwrap();
    // After a third of it.
    is_renewed(&guard).await;
    guard.ensure_held().unwrap();
    assert!(there.try_acquire("a", LockOptions::new()).await.unwrap().is_none());
    guard.release().await.unwrap();
    assert!(holders(&database).await.is_empty());
}

/// The next caller waits for no TTL.
///
/// Red without: a connection for each lock (a lease would keep it for 60 s).
#[tokio::test]
async fn the_lock_of_a_killed_process_is_free_at_once() {
    let database = Database::new().await;
    let mut node = node!("lock", url = database.url("lock=session"));
    node.say("acquire a").await;
    assert!(node.line().await.starts_with("held "));
    let manager = manager(&database).await;
    let waits = tokio::spawn(async move {
        let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
        guard.release().await.unwrap();
    });
    waits_on_the_server(&database, 1).await;
    node.kill();
    in_time(waits).await.unwrap();
    assert!(holders(&database).await.is_empty());
}

#[tokio::test]
async fn a_waiter_is_notified_in_the_order_of_the_server() {
    let database = Database::new().await;
    let holder = manager(&database).await;
    let guard = holder.acquire("a", LockOptions::new()).await.unwrap();
    let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
    for nth in 0..4 {
        let (manager, sender) = (manager(&database).await, sender.clone());
        tokio::spawn(async move {
            let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
            sender.send(nth).unwrap();
            guard.release().await.unwrap();
        });
        waits_on_the_server(&database, nth + 1).await;
    }
    guard.release().await.unwrap();
    for nth in 0..4 {
        assert_eq!(in_time(order.recv()).await, Some(nth));
    }
    let free = async || holders(&database).await.is_empty();
    eventually("the lock is free", free).await;
}

#[tokio::test]
async fn a_waiter_that_gives_up_waits_no_more_on_the_server() {
    let database = Database::new().await;
    let (here, there) = (manager(&database).await, manager(&database).await);
    let guard = here.acquire("a", LockOptions::new()).await.unwrap();
    let options = LockOptions::new().wait(Duration::from_millis(300));
    // If the server has not answered by then, it is an outage.
    let refused = async || match there.acquire("a", options.clone()).await {
        Err(Error::Contended { .. }) => true,
        Err(Error::Store { .. }) => false,
        other => panic!("{other:?}"),
    };
    eventually("it gives up", refused).await;
    waits_on_the_server(&database, 0).await;
    guard.release().await.unwrap();
    assert!(holders(&database).await.is_empty());
}

#[tokio::test]
async fn options_that_session_locks_do_not_support_are_refused_with_a_message() {
    let database = Database::new().await;
    let manager = manager(&database).await;
    let shared = LockOptions::new().mode(Mode::Shared);
    for outcome in [
        manager.acquire("a", shared).await,
        manager.acquire("a", LockOptions::new().permits(2)).await,
        manager.acquire_all(["a", "b"], LockOptions::new()).await,
    ] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::InvalidOptions(_)), "{error:?}");
        assert!(error.to_string().contains("lock=session"), "{error}");
    }
}

#[tokio::test]
async fn databases_are_kept_apart() {
    let (here, there) = (Database::new().await, Database::new().await);
    let (one, other) = (manager(&here).await, manager(&there).await);
    let first = one.acquire("a", LockOptions::new()).await.unwrap();
    let second = other.try_acquire("a", LockOptions::new()).await.unwrap();
    second.expect("another database").release().await.unwrap();
    first.release().await.unwrap();
}

/// Red without: the arm for `NOT_OWNER` in `Sessions::force_release`.
#[tokio::test]
async fn a_process_that_may_not_end_a_connection_learns_what_to_do() {
    let database = Database::new().await;
    let here = manager(&database).await;
    let guard = here.acquire("a", LockOptions::new()).await.unwrap();
    let name = &database.name;
    database.execute(&format!("CREATE USER operator_{name} IDENTIFIED BY 'pass'")).await;
    let rights = "SELECT, INSERT, UPDATE, DELETE, EXECUTE";
    database.execute(&format!("GRANT {rights} ON {name}.* TO operator_{name}")).await;
    let login = format!("operator_{name}:pass@");
    let url = database.url("lock=session").replace("locker:s3cret@", &login);
    let operator = LockManager::connect(&url).await.unwrap();
    let refused = force_release(&operator, "a").await.unwrap_err().to_string();
    assert!(refused.contains("with `KILL ") && !refused.contains("pass"), "{refused}");
    guard.ensure_held().unwrap();
    assert!(force_release(&here, "a").await.unwrap(), "its own user may");
    in_time(guard.lost()).await;
}

/// The stopped process keeps its connection, but sends nothing. The network is fine.
///
/// Red without: `let_idle` before the lock is taken. The connection would be kept for as
/// long as the process lives.
#[tokio::test]
async fn the_lock_of_a_stopped_process_ends_about_when_its_ttl_says() {
    let database = Database::new().await;
    let mut node = node!("lock", url = database.url("lock=session&ttl=10s&heartbeat=60s"));
    node.say("acquire a").await;
    assert!(node.line().await.starts_with("held "));
    let manager = manager(&database).await;
    assert!(manager.try_acquire("a", LockOptions::new()).await.unwrap().is_none());
    node.stop_signal();
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    guard.release().await.unwrap();
    node.kill();
    assert!(holders(&database).await.is_empty());
}
