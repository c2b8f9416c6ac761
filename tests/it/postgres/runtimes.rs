//! A manager on several runtimes: what one of them requested, another gives up.

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::*;
use crate::support::{connected, works};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// The server is stopped while the request is on its way, and executes it later. The caller gives
/// up on a runtime that is not driven afterwards, so another one sends the release.
///
/// Red without: the connection that is remembered, or the end of its session.
#[test]
fn a_request_is_not_executed_after_the_release_that_undoes_it_on_another_runtime() {
    // Its caller gives up, or its answer does not come in time.
    for gives_up in [true, false] {
        is_not_executed_after_its_release(gives_up);
    }
}

fn is_not_executed_after_its_release(gives_up: bool) {
    let (left, here) = (runtime(), runtime());
    let database = here.block_on(Database::new());
    let other = here.block_on(database.manager(""));
    let url = database.url_with("connections=1&response_timeout=300ms&heartbeat=1h");
    // The watchdog has a task on both runtimes.
    let manager = loop {
        let manager = here.block_on(connected(&url));
        if left.block_on(works(&manager)) {
            break manager;
        }
    };
    let session = "select pid::bigint from pg_stat_activity where datname = current_database()
        and query like '%delete from %.lockattr_locks%' and pid <> pg_backend_pid()
        order by query_start desc limit 1";
    let session = i32::try_from(here.block_on(database.number(session))).unwrap();
    database.server.stop_session(session);
    left.block_on(async {
        let asks = manager.try_acquire("a", LockOptions::new());
        let answer = match gives_up {
            true => timeout(Duration::from_millis(200), asks).await.unwrap_or(Ok(None)),
            false => asks.await,
        };
        assert!(!matches!(answer, Ok(Some(_))), "answered");
        assert!(gives_up || answer.is_err(), "answered");
    });
    // Long enough for a release over another session.
    here.block_on(async { tokio::time::sleep(Duration::from_secs(2)).await });
    database.server.continue_session(session);
    here.block_on(async {
        let there = format!("select count(*) from pg_stat_activity where pid = {session}");
        eventually("its session ends", async || database.number(&there).await == 0).await;
        let free = async || match other.try_acquire("a", LockOptions::new()).await {
            Ok(Some(guard)) => guard.release().await.is_ok(),
            Ok(None) | Err(_) => false,
        };
        eventually("it is free", free).await;
        database.has_nothing_left().await;
    });
    drop(left);
}
