//! Many callers at once, over a server whose disk needs milliseconds for a commit. Requests wait in
//! this process until the server has answered others; that is not the server's silence.

use futures_util::future::join_all;
use lockattr_tests::Engine;

use super::*;
use crate::crowd;
use crate::support::connected;

/// Red without: the limit of what is in flight, the silence that counts from the last reply, or the
/// renewals that come first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_tasks_lose_no_lease_and_no_release() {
    let server = PostgresServer::with_slow_commits(20_000).await;
    // Shorter than a thousand commits take, one after the other. So is the lease.
    let query = "response_timeout=5s&connections=1";
    let manager = manager(&with_query(&server.url(), query)).await;
    crowd::loses_nothing(&manager, Duration::from_secs(15)).await;
    assert!(server.left().await.is_empty(), "{:?}", server.left().await);
}

/// Red without: the keys in `Refusals`, or what `no_response` says without a refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_gives_up_in_the_crowd_learns_of_no_holder() {
    let server = PostgresServer::with_slow_commits(40_000).await;
    // Each statement takes 64 of them, so all of them would need more than a second.
    let manager = manager(&with_query(&server.url(), "wait=1s&connections=1")).await;
    crowd::learns_of_no_holder(&manager).await;
    eventually("nothing is left", async || server.left().await.is_empty()).await;
}

/// A session that is stopped in the middle of a statement keeps no lock that other sessions need.
///
/// Red without: the counter that takes no lock of a session.
#[tokio::test]
async fn stopped_sessions_do_not_stop_other_processes() {
    let database = Database::new().await;
    let url = database.url_with("response_timeout=300ms&connect_timeout=2s&connections=1");
    let managers: Vec<_> = join_all((0..4).map(|_| connected(&url))).await;
    let works = async |manager: &LockManager, key: &str| {
        let works = async || match manager.try_acquire(key, LockOptions::new()).await {
            Ok(Some(guard)) => guard.release().await.is_ok(),
            Ok(None) | Err(_) => false,
        };
        eventually(&format!("{key} is locked"), works).await;
    };
    for round in 0..8 {
        let busy: Vec<_> = managers
            .iter()
            .enumerate()
            .map(|(n, manager)| {
                let manager = manager.clone();
                tokio::spawn(async move {
                    loop {
                        let key = format!("busy {n}");
                        if let Ok(Some(guard)) = manager.try_acquire(key, LockOptions::new()).await
                        {
                            guard.release().await.ok();
                        }
                    }
                })
            })
            .collect();
        let sessions = "select coalesce((select pid::bigint from pg_stat_activity
            where datname = current_database()
            and pid <> pg_backend_pid() and backend_type = 'client backend'
            order by random() limit 1), 0)";
        let mut session = 0;
        // On a busy machine they all may have been given up.
        eventually("a process has a session", async || {
            session = database.number(sessions).await;
            session > 0
        })
        .await;
        let session = i32::try_from(session).unwrap();
        database.server.stop_session(session);
        // Long enough for its client to give it up.
        tokio::time::sleep(Duration::from_millis(500)).await;
        database.server.continue_session(session);
        busy.iter().for_each(tokio::task::JoinHandle::abort);
        for (n, manager) in managers.iter().enumerate() {
            works(manager, &format!("key {round} {n}")).await;
        }
    }
    // Each session holds the lock of its own place, and nothing else.
    let locks = "select count(*) from pg_locks where locktype = 'advisory'
        and database = (select oid from pg_database where datname = current_database())";
    let sessions = "select count(*) from pg_stat_activity where datname = current_database()
        and pid <> pg_backend_pid() and backend_type = 'client backend'";
    eventually("no other lock is held", async || {
        database.number(locks).await == database.number(sessions).await
    })
    .await;
    database.has_nothing_left().await;
}
