//! Connections that end, fall silent, or come back, and a server that restarts.

use futures_util::future::join_all;
use lockattr::Error;
use lockattr_tests::{Engine, in_time, node};
use tokio::time::sleep;

use super::*;
use crate::support::{connected, is_renewed, works};

#[tokio::test]
async fn all_leases_are_renewed_by_one_statement() {
    let database = Database::new().await;
    let manager = database.manager("ttl=15s&heartbeat=1h&connections=1").await;
    let keys: Vec<_> = (0..50).map(|n| format!("key {n}")).collect();
    let guards = join_all(keys.iter().map(|key| acquire(&manager, key))).await;
    let ends = async |which: &str| {
        let ends = format!("select (extract(epoch from {which}(ends)) * 1000)::bigint");
        database.number(&format!("{ends} from lockattr_locks")).await
    };
    let before = ends("max").await;
    // Rows that one statement wrote belong to one transaction.
    let writers = "select count(distinct xmin::text) from lockattr_locks";
    let renewed = async || ends("min").await > before && database.number(writers).await <= 3;
    eventually("all are renewed together", renewed).await;
    for guard in guards {
        guard.release().await.unwrap();
    }
    database.has_nothing_left().await;
}

#[tokio::test]
async fn a_request_to_a_stopped_session_is_not_executed_after_its_release() {
    let database = Database::new().await;
    let query = "connections=1&response_timeout=300ms&heartbeat=1h";
    let manager = connected(&database.url_with(query)).await;
    let session = "select pid::bigint from pg_stat_activity
        where datname = current_database() and query like '%delete from %.lockattr_locks where%'
            and pid <> pg_backend_pid() order by query_start desc limit 1";
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
    let manager = database.manager("connections=1").await;
    acquire(&manager, "a").await.release().await.unwrap();
    let asks = "from pg_stat_activity join pg_locks using (pid)
        where datname = current_database() and query like '%delete from %.lockattr_locks where%'
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
    let url = server.url_with("response_timeout=300ms&connect_timeout=1s&heartbeat=1h");
    for round in 0..5 {
        let manager = connected(&url).await;
        server.freeze();
        let refused = in_time(manager.try_acquire("a", LockOptions::new())).await;
        assert!(matches!(refused, Err(Error::Store { .. })), "{round}: {refused:?}");
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
    let holder = manager(&server.url_with("ttl=30s")).await;
    let guard = acquire(&holder, "a").await;
    let token = guard.fencing_token();
    server.restart().await;
    let other = manager(&server.url()).await;
    assert!(other.try_acquire("a", LockOptions::new()).await.unwrap().is_none(), "two at once");
    is_renewed(&guard).await;
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
    let manager = connected(&database.url_with("response_timeout=1s")).await;
    // Not a lock of another client: the server has a limit of its own for those.
    let slow = "create function nap() returns trigger language plpgsql as $$
            begin perform nextval('public.naps'); perform pg_sleep(3600); return null; end $$;
        create trigger nap before insert on lockattr_locks execute function nap();
        create sequence naps";
    database.run(slow).await;
    let refused = manager.try_acquire("a", LockOptions::new()).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    let sleeps = "select count(*) from pg_stat_activity
        where datname = current_database() and wait_event = 'PgSleep'";
    let none = async || database.number(sleeps).await == 0;
    eventually("nothing sleeps on the server", &none).await;
    // The next session of a living process would end the sleeping one.
    let mut node = node!("lock", url = database.url_with("response_timeout=20s"));
    let naps = "select last_value from naps";
    let before = database.number(naps).await;
    node.say("acquire a").await;
    eventually("it sleeps", async || database.number(naps).await > before).await;
    node.kill();
    eventually("nothing sleeps on the server", none).await;
    database.run("drop trigger nap on lockattr_locks").await;
    database.has_nothing_left().await;
    // A busy machine may need longer than this manager's response timeout.
    eventually("it works again", async || works(&manager).await).await;
    database.has_nothing_left().await;
}

/// Whether the server has loaded its compiler for the process of this session.
fn compiles(session: i32) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{session}/maps"));
    maps.expect("the memory of the server's processes can be read").contains("llvmjit")
}

/// Red without: `jit` in `session.rs`. Some plans cannot avoid what we forbid, and count as so costly that the
/// server would compile them, in a tenth of a second of its processor for each connection.
#[tokio::test]
async fn no_session_compiles_its_statements() {
    let database = Database::new().await;
    let manager = database.manager("connections=1").await;
    acquire(&manager, "a").await.release().await.unwrap();
    let swept = "select count(*) from lockattr_sweep where due > now()";
    eventually("it has asked for a sweep", async || database.number(swept).await == 1).await;
    let sessions = database.server.client_of(&database.name).await;
    let ours = "select pid from pg_stat_activity
        where datname = current_database() and application_name not in ('', 'psql')";
    let ours: Vec<i32> =
        sessions.query(ours, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(ours.len(), 1);
    assert!(!compiles(ours[0]));
    // Where the server has a compiler, this is how it shows.
    let costly =
        "set jit = on; set jit_above_cost = 0; select sum(n) from generate_series(1, 9) as n";
    sessions.batch_execute(costly).await.unwrap();
    let this =
        sessions.query_one("select pg_backend_pid(), pg_jit_available()", &[]).await.unwrap();
    assert_eq!(compiles(this.get(0)), this.get::<_, bool>(1));
}

#[tokio::test]
async fn dropped_tables_are_created_again() {
    let database = Database::new().await;
    let manager = database.manager("").await;
    acquire(&manager, "a").await.release().await.unwrap();
    database.run("drop table lockattr_locks, lockattr_holders, lockattr_queue cascade").await;
    database
        .run("drop sequence lockattr_counter; drop function lockattr_mark_done_3, lockattr_sweep_3")
        .await;
    let works = async || manager.try_acquire("a", LockOptions::new()).await.is_ok();
    eventually("it works again", works).await;
    database.has_nothing_left().await;
}
