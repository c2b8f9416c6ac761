//! Connections that end, fall silent, or come back, and a server that restarts.

use lockattr::Error;
use lockattr_tests::Engine;
use tokio::time::{Instant, sleep};

use super::*;

#[tokio::test]
async fn all_leases_are_renewed_by_one_statement() {
    let database = Database::new().await;
    let manager = database.manager("ttl=6s&heartbeat=60s&connections=1").await;
    let mut guards = Vec::new();
    for n in 0..50 {
        guards.push(acquire(&manager, &format!("key {n}")).await);
    }
    // Rows that one statement wrote belong to one transaction.
    let writers = "select count(distinct xmin::text) from lockattr_locks";
    assert_eq!(database.number(writers).await, 50);
    eventually("all are renewed together", async || database.number(writers).await <= 3).await;
    for guard in guards {
        guard.release().await.unwrap();
    }
    database.has_nothing_left().await;
}

#[tokio::test]
async fn a_request_to_a_stopped_session_is_not_executed_after_its_release() {
    let database = Database::new().await;
    let query = "ttl=60s&wait=0s&connections=1&response_timeout=300ms&connect_timeout=3s";
    let manager = database.manager(query).await;
    acquire(&manager, "a").await.release().await.unwrap();
    let session = "select pid::bigint from pg_stat_activity
        where datname = current_database() and query like '%delete from lockattr_locks where%'
            and pid <> pg_backend_pid()";
    let session = i32::try_from(database.number(session).await).unwrap();
    database.server.stop_session(session);
    let refused = manager.try_acquire("a", LockOptions::new()).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    // Long enough for a release over another session.
    sleep(Duration::from_secs(2)).await;
    database.server.continue_session(session);
    // The session first reads all that was in its socket; otherwise the next request might overtake
    // that.
    let there = format!("select count(*) from pg_stat_activity where pid = {session}");
    eventually("it ends", async || database.number(&there).await == 0).await;
    eventually("it is free", async || {
        matches!(manager.try_acquire("a", LockOptions::new()).await, Ok(Some(_)))
    })
    .await;
    database.has_nothing_left().await;
}

/// To check that a waiter's session is alive, others try to share the advisory lock of its place. A
/// transaction that has just done so, as a release does, is not the session that a new one must
/// end.
#[tokio::test]
async fn a_new_session_does_not_terminate_a_session_that_probes_its_predecessor() {
    let database = Database::new().await;
    let manager = database.manager("ttl=60s&connections=1").await;
    acquire(&manager, "a").await.release().await.unwrap();
    let asks = "from pg_stat_activity join pg_locks using (pid)
        where datname = current_database() and query like '%delete from lockattr_locks where%'
            and locktype = 'advisory' and pid <> pg_backend_pid()";
    let place =
        database.number(&format!("select classid::bigint << 32 | objid::bigint {asks}")).await;
    let looks = database.server.client_of(&database.name).await;
    let looking = format!("begin; select pg_advisory_xact_lock_shared({place})");
    let looking = async { looks.batch_execute(&looking).await.unwrap() };
    let waits = "select count(*) from pg_stat_activity
        where datname = current_database() and wait_event = 'advisory'";
    let end = async {
        eventually("it polls", async || database.number(waits).await == 1).await;
        database.run(&format!("select pg_terminate_backend(pid) {asks}")).await;
    };
    tokio::join!(looking, end);
    let again = tokio::spawn({
        let manager = manager.clone();
        async move { acquire(&manager, "a").await.release().await }
    });
    eventually("the next session waits", async || database.number(waits).await == 1).await;
    looks.batch_execute("commit").await.expect("it was not terminated");
    again.await.unwrap().unwrap();
    database.has_nothing_left().await;
}

/// A server with all of its sessions frozen, including those that would be opened.
#[tokio::test]
async fn requests_to_a_frozen_server_are_undone_when_it_resumes() {
    let server = PostgresServer::start().await;
    let url = server.url_with("ttl=60s&wait=0s&response_timeout=300ms&connect_timeout=3s");
    let manager = manager(&url).await;
    acquire(&manager, "a").await.release().await.unwrap();
    for round in 0..5 {
        server.freeze();
        let started = Instant::now();
        let refused = manager.try_acquire("a", LockOptions::new()).await;
        assert!(matches!(refused, Err(Error::Store { .. })), "{round}: {refused:?}");
        assert!(started.elapsed() < SOON);
        sleep(Duration::from_millis(100)).await;
        server.thaw();
        eventually("nothing is left", async || server.left().await.is_empty()).await;
        let again =
            async || matches!(manager.try_acquire("a", LockOptions::new()).await, Ok(Some(_)));
        eventually("it is free", again).await;
        eventually("nothing is left", async || server.left().await.is_empty()).await;
    }
}

#[tokio::test]
async fn a_lock_outlives_a_crash_of_the_server() {
    let server = PostgresServer::start().await;
    let holder = manager(&server.url_with("ttl=10s")).await;
    let guard = acquire(&holder, "a").await;
    let token = guard.fencing_token();
    server.restart().await;
    let other = manager(&server.url()).await;
    assert!(other.try_acquire("a", LockOptions::new()).await.unwrap().is_none(), "two at once");
    let left = guard.remaining();
    eventually("the lease is renewed", async || guard.remaining() > left).await;
    guard.ensure_held().unwrap();
    guard.release().await.unwrap();
    let next = acquire(&other, "a").await;
    assert!(next.fencing_token() > token);
    next.release().await.unwrap();
    assert!(server.left().await.is_empty());
}

#[tokio::test]
async fn the_server_cancels_a_statement_that_the_client_stopped_waiting_for() {
    let database = Database::new().await;
    let manager = database.manager("ttl=60s&wait=0s&response_timeout=2s").await;
    // Another client locks the table.
    let meddler = database.server.client_of(&database.name).await;
    meddler.batch_execute("begin; lock table lockattr_locks").await.unwrap();
    let refused = manager.try_acquire("a", LockOptions::new()).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    let waits = "select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    eventually("nothing waits on the server", async || database.number(waits).await == 0).await;
    meddler.batch_execute("rollback").await.unwrap();
    database.has_nothing_left().await;
    // A busy machine may need longer than this manager's response timeout.
    let works = async || match manager.try_acquire("a", LockOptions::new()).await {
        Ok(Some(guard)) => guard.release().await.is_ok(),
        Ok(None) | Err(_) => false,
    };
    eventually("it works again", works).await;
    database.has_nothing_left().await;
}

#[tokio::test]
async fn dropped_tables_are_created_again() {
    let database = Database::new().await;
    let manager = database.manager("ttl=20s").await;
    acquire(&manager, "a").await.release().await.unwrap();
    database.run("drop table lockattr_locks, lockattr_holders, lockattr_queue cascade").await;
    database.run("drop sequence lockattr_counter; drop function lockattr_mark_done_2").await;
    let works = async || manager.try_acquire("a", LockOptions::new()).await.is_ok();
    eventually("it works again", works).await;
    database.has_nothing_left().await;
}
