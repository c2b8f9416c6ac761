//! A manager on several runtimes: what one of them requested, another gives up.

use std::pin::pin;
use std::sync::mpsc;
use std::time::Duration;

use futures_util::poll;
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{eventually, in_time, with_query};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Database, acquire};
use crate::support::{connected, works};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

struct Case {
    /// Where the caller gives up. It is not driven afterwards, so its connections say nothing more.
    left: Runtime,
    /// Where the rest of the process runs.
    here: Runtime,
    database: Database,
    manager: LockManager,
    other: LockManager,
}

impl Case {
    fn new() -> Self {
        let (left, here) = (runtime(), runtime());
        let database = here.block_on(Database::new());
        let other = here.block_on(database.sessions("connections=1"));
        let query = "lock=session&connections=1&response_timeout=300ms&heartbeat=1h";
        let url = with_query(&database.url, query);
        // The watchdog has a task on both runtimes.
        let manager = loop {
            let manager = here.block_on(connected(&url));
            if left.block_on(works(&manager)) {
                break manager;
            }
        };
        Self { left, here, database, manager, other }
    }

    /// The lock ends at the server, although the runtime that requested it is not driven.
    fn is_free_in_the_end(&self, key: &str) {
        self.here.block_on(async {
            let free = async || {
                let outcome = self.other.try_acquire(key, LockOptions::new()).await;
                match outcome.ok().flatten() {
                    Some(guard) => guard.release().await.is_ok(),
                    None => false,
                }
            };
            eventually("it is free", free).await;
        });
    }
}

/// Red without: `end_abandoned` for a claim that waits.
#[test]
fn a_waiter_on_a_runtime_that_is_not_driven_is_not_granted_the_lock_for_good() {
    let case = Case::new();
    let guard = case.here.block_on(acquire(&case.other, "a"));
    case.left.block_on(async {
        let mut queued = pin!(case.database.waiting(1));
        loop {
            tokio::select! {
                // A busy server may take longer than its time to answer.
                asked = case.manager.acquire("a", LockOptions::new()) => {
                    assert!(asked.is_err(), "two hold it");
                }
                () = &mut queued => break,
            }
        }
    });
    case.here.block_on(case.database.waiting(0));
    case.here.block_on(guard.release()).unwrap();
    case.is_free_in_the_end("a");
    drop(case.left);
    case.here.block_on(case.database.nobody_locks());
}

/// The server is stopped while the request is on its way, and executes it later.
///
/// Red without: `end_abandoned` for a claim that was requested.
#[test]
fn a_request_without_an_answer_is_undone_on_its_own_connection() {
    let case = Case::new();
    let pid: i32 = case.left.block_on(async {
        let holds = "select pid from pg_locks where locktype = 'advisory' and granted
            and database = (select oid from pg_database where datname = current_database())";
        let client = case.database.client().await;
        // A busy server may take longer than its time to answer, and then the session is another.
        loop {
            let Ok(guard) = case.manager.acquire("own", LockOptions::new()).await else { continue };
            // The session of this runtime is the one that holds a lock taken here.
            let holders = client.query(holds, &[]).await.unwrap();
            if let ([holder], Ok(_)) = (&*holders, guard.release().await) {
                break holder.get(0);
            }
        }
    });
    case.database.server.stop_session(pid);
    case.left.block_on(async {
        let asks = case.manager.acquire("a", LockOptions::new());
        let asked = timeout(Duration::from_millis(200), asks).await;
        assert!(!matches!(asked, Ok(Ok(_))), "answered");
    });
    case.database.server.continue_session(pid);
    case.is_free_in_the_end("a");
    drop(case.left);
    case.here.block_on(case.database.nobody_locks());
}

/// A thread that is blocked right after a request keeps the task of the connection, which it has
/// woken last, and no other thread takes that over.
///
/// Red without: the end at the server, in `keeper`; or `DateStyle` in the settings of a session, whose time of
/// beginning would be read as another one.
#[test]
fn a_lock_ends_with_its_lease_while_a_blocked_thread_keeps_the_task_of_its_connection() {
    let here = runtime();
    let database = here.block_on(Database::new());
    here.block_on(async {
        let client = database.client().await;
        for setting in ["datestyle = 'SQL, DMY'", "timezone = 'Asia/Kolkata'"] {
            let set = format!("alter database {} set {setting}", database.name);
            client.batch_execute(&set).await.unwrap();
        }
    });
    let url = with_query(&database.url, "lock=session&connections=1&response_timeout=3s&ttl=2s");
    let threads = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (unblock, unblocked) = mpsc::channel::<()>();
    let (says, held) = oneshot::channel();
    let blocked = threads.spawn(async move {
        let manager = LockManager::connect(url).await.unwrap();
        let held = manager.acquire("a", LockOptions::new()).await.unwrap();
        let mut asks = Box::pin(manager.acquire("b", LockOptions::new()));
        assert!(poll!(&mut asks).is_pending());
        says.send(()).unwrap();
        unblocked.recv().unwrap_err();
        let lost = held.ensure_held();
        drop((asks, held));
        manager.shutdown().await;
        lost
    });
    here.block_on(async {
        in_time(held).await.unwrap();
        let other = database.sessions("").await;
        in_time(acquire(&other, "a")).await.release().await.unwrap();
        drop(unblock);
        assert!(in_time(blocked).await.unwrap().is_err(), "another has held it");
    });
    drop(threads);
    here.block_on(database.nobody_locks());
}
