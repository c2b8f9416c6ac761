//! A lock inside a transaction of the caller.

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{StoppedClock, eventually, in_time, pause};
use tokio::time::sleep;
use tokio_postgres::IsolationLevel;

use super::{Database, acquire, becomes_free, is_free, manager};

/// Returns a manager of each lock form.
async fn both(database: &Database, query: &str) -> [LockManager; 2] {
    [database.leases(query).await, database.sessions(query).await]
}

#[tokio::test]
async fn it_is_released_by_commit_and_never_before() {
    let database = Database::new().await;
    for manager in both(&database, "").await {
        let mut client = database.client().await;
        for commits in [true, false] {
            let before = acquire(&manager, "a").await;
            let first = before.fencing_token();
            before.release().await.unwrap();
            let mut transaction = client.transaction().await.unwrap();
            let token = manager.acquire_in(&mut transaction, "a").await.unwrap();
            assert!(token > first);
            assert!(!is_free(&manager, "a").await);
            transaction.batch_execute("select 1").await.unwrap();
            sleep(Duration::from_millis(50)).await;
            assert!(!is_free(&manager, "a").await, "released before its transaction ended");
            assert!(is_free(&manager, "b").await, "and no other lock is held");
            match commits {
                true => transaction.commit().await.unwrap(),
                false => transaction.rollback().await.unwrap(),
            }
            let after = acquire(&manager, "a").await;
            assert!(after.fencing_token() > token);
            after.release().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_commit_wakes_a_waiter_at_once_and_a_rollback_soon() {
    let database = Database::new().await;
    for manager in both(&database, "").await {
        let mut client = database.client().await;
        for commits in [true, false] {
            let mut woken = async || {
                let mut transaction = client.transaction().await.unwrap();
                let token = manager.acquire_in(&mut transaction, "a").await.unwrap();
                let waits = tokio::spawn({
                    let manager = manager.clone();
                    async move { acquire(&manager, "a").await }
                });
                sleep(Duration::from_millis(300)).await;
                assert!(!waits.is_finished());
                // It would ask again by itself, within a second.
                let clock = commits.then(StoppedClock::new);
                match commits {
                    true => transaction.commit().await.unwrap(),
                    false => transaction.rollback().await.unwrap(),
                }
                // On a slow machine it may ask right before the commit, and miss the message.
                for _ in 0..50 {
                    if !waits.is_finished() {
                        pause(Duration::from_millis(100)).await;
                    }
                }
                let is_woken = waits.is_finished();
                drop(clock);
                let guard = in_time(waits).await.unwrap();
                assert!(guard.fencing_token() > token);
                guard.release().await.unwrap();
                is_woken || !commits
            };
            for _ in 0..3 {
                eventually("it is woken", &mut woken).await;
            }
        }
    }
}

/// Waits until so many claims are in the queue of the leases or in the server's own.
async fn queued(database: &Database, count: i64) {
    let client = database.client().await;
    let queued = "select (select count(*) from lockattr_queue) + (select count(*) from pg_locks
        where locktype = 'advisory' and not granted
            and database = (select oid from pg_database where datname = current_database()))";
    let there = async || client.query_one(queued, &[]).await.unwrap().get::<_, i64>(0) == count;
    eventually(&format!("{count} queued"), there).await;
}

/// Waiters that were queued before the transaction acquired the lock are woken too.
#[tokio::test]
async fn waiters_that_were_queued_before_a_transaction_are_served_after_it() {
    let database = Database::new().await;
    let managers = both(&database, "").await;
    // The other managers act as another process: a process hands its locks to its own callers
    // first, for a while.
    for (manager, other) in managers.iter().zip(&both(&database, "").await) {
        let holder = acquire(manager, "a").await;
        let (mut client, order) = (database.client().await, std::sync::Mutex::new(Vec::new()));
        let transaction = async {
            let mut transaction = client.transaction().await.unwrap();
            manager.acquire_in(&mut transaction, "a").await.unwrap();
            order.lock().unwrap().push("transaction");
            sleep(Duration::from_millis(300)).await;
            transaction.rollback().await.unwrap();
        };
        let waits = async {
            queued(&database, 1).await;
            let guard = acquire(other, "a").await;
            order.lock().unwrap().push("waiter");
            guard.release().await.unwrap();
        };
        let releases = async {
            queued(&database, 2).await;
            holder.release().await.unwrap();
        };
        let all = async { tokio::join!(transaction, waits, releases) };
        in_time(all).await;
        assert_eq!(*order.lock().unwrap(), ["transaction", "waiter"]);
    }
}

#[tokio::test]
async fn two_transactions_take_turns() {
    let database = Database::new().await;
    for manager in both(&database, "").await {
        database.client().await.batch_execute(
            "drop table if exists counts; create table counts (value int); insert into counts values (0)",
        ).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let (manager, mut client) = (manager.clone(), database.client().await);
            tasks.spawn(async move {
                for _ in 0..5 {
                    let mut transaction = client.transaction().await.unwrap();
                    manager.acquire_in(&mut transaction, "counts").await.unwrap();
                    let row = transaction.query_one("select value from counts", &[]).await.unwrap();
                    let value: i32 = row.get(0);
                    tokio::task::yield_now().await;
                    let sets = "update counts set value = $1";
                    transaction.execute(sets, &[&(value + 1)]).await.unwrap();
                    transaction.commit().await.unwrap();
                }
            });
        }
        tasks.join_all().await;
        let client = database.client().await;
        let value: i32 = client.query_one("select value from counts", &[]).await.unwrap().get(0);
        assert_eq!(value, 20);
    }
}

#[tokio::test]
async fn a_transaction_excludes_callers_of_its_own_process_too() {
    let database = Database::new().await;
    let manager = database.leases("linger=10m").await;
    acquire(&manager, "a").await.release().await.unwrap();
    let mut client = database.client().await;
    // When the process begins to listen for waiters, it keeps no lock that it has kept before.
    let listening = "select count(*) from pg_stat_activity
        where datname = current_database() and state = 'idle' and query like 'listen %'";
    let listens = async || client.query_one(listening, &[]).await.unwrap().get::<_, i64>(0) == 1;
    eventually("it listens", listens).await;
    acquire(&manager, "a").await.release().await.unwrap();
    let mut transaction = client.transaction().await.unwrap();
    manager.acquire_in(&mut transaction, "a").await.unwrap();
    assert!(!is_free(&manager, "a").await);
    transaction.commit().await.unwrap();
    acquire(&manager, "a").await.release().await.unwrap();
}

#[tokio::test]
async fn rolling_back_a_savepoint_releases_the_lock() {
    let database = Database::new().await;
    for manager in both(&database, "").await {
        let mut client = database.client().await;
        let mut transaction = client.transaction().await.unwrap();
        let mut savepoint = transaction.savepoint("here").await.unwrap();
        manager.acquire_in(&mut savepoint, "a").await.unwrap();
        assert!(!is_free(&manager, "a").await);
        savepoint.rollback().await.unwrap();
        assert!(is_free(&manager, "a").await);
        transaction.commit().await.unwrap();
    }
}

/// The connection ends without a rollback.
#[tokio::test]
async fn dropping_a_transaction_releases_the_lock() {
    let database = Database::new().await;
    // A waiter for a lease is not notified of this end, and asks again after a second.
    for manager in both(&database, "").await {
        let mut client = database.client().await;
        let mut transaction = client.transaction().await.unwrap();
        manager.acquire_in(&mut transaction, "a").await.unwrap();
        drop(transaction);
        drop(client);
        acquire(&manager, "a").await.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_transaction_in_another_database_is_refused() {
    let (database, other) = (Database::new().await, Database::new().await);
    for manager in both(&database, "").await {
        let mut client = other.client().await;
        let mut transaction = client.transaction().await.unwrap();
        let refused = manager.acquire_in(&mut transaction, "a").await;
        let Err(Error::InvalidOptions(sentence)) = refused else { panic!("{refused:?}") };
        assert!(sentence.contains("database"), "{sentence}");
        assert!(is_free(&manager, "a").await, "and nothing stays locked");
    }
    let memory = manager("memory://").await;
    let mut client = database.client().await;
    let mut transaction = client.transaction().await.unwrap();
    let refused = memory.acquire_in(&mut transaction, "a").await;
    assert!(matches!(refused, Err(Error::InvalidOptions(_))), "{refused:?}");
}

#[tokio::test]
async fn a_key_that_its_call_chain_holds_is_refused() {
    let database = Database::new().await;
    for manager in both(&database, "").await {
        let mut client = database.client().await;
        let mut transaction = client.transaction().await.unwrap();
        let inside = async |_: &_| manager.acquire_in(&mut transaction, "a").await;
        let refused = manager.with_lock("a", LockOptions::new(), inside).await.unwrap();
        assert!(matches!(refused, Err(Error::InvalidOptions(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn a_transaction_that_waits_too_long_is_contended() {
    let database = Database::new().await;
    let holders = both(&database, "").await;
    for (holder, manager) in holders.iter().zip(&both(&database, "wait=300ms").await) {
        let guard = acquire(holder, "a").await;
        let mut client = database.client().await;
        // If the server has not answered by then, it is an outage.
        let refused = async || {
            let mut transaction = client.transaction().await.unwrap();
            let refused = manager.acquire_in(&mut transaction, "a").await;
            transaction.rollback().await.unwrap();
            match refused {
                Err(Error::Contended { .. }) => true,
                Err(Error::Store { .. }) => false,
                other => panic!("{other:?}"),
            }
        };
        eventually("it is contended", refused).await;
        guard.release().await.unwrap();
        becomes_free(holder, "a").await;
    }
}

/// The server detects that two session locks wait for each other. Leases are invisible to it.
#[tokio::test]
async fn two_transactions_that_deadlock_do_not_wait_forever() {
    let database = Database::new().await;
    let [leases, sessions] = both(&database, "wait=10s").await;
    for (manager, by_server) in [(leases, false), (sessions, true)] {
        let (mut here, mut there) = (database.client().await, database.client().await);
        let mut one = here.transaction().await.unwrap();
        let mut two = there.transaction().await.unwrap();
        manager.acquire_in(&mut one, "a").await.unwrap();
        manager.acquire_in(&mut two, "b").await.unwrap();
        let crosswise = async {
            tokio::join!(
                async {
                    let got = manager.acquire_in(&mut one, "b").await;
                    one.rollback().await.unwrap();
                    got
                },
                async {
                    let got = manager.acquire_in(&mut two, "a").await;
                    two.rollback().await.unwrap();
                    got
                }
            )
        };
        let (one, two) = in_time(crosswise).await;
        let refused = [one, two].into_iter().find_map(Result::err).expect("one has to give way");
        match refused {
            Error::Store { source, .. } if by_server => {
                assert!(source.to_string().contains("deadlock"), "{source}");
            }
            Error::Contended { .. } if !by_server => {}
            other => panic!("{by_server}: {other:?}"),
        }
        // A lock that was granted to a call at the moment at which it gave up is released later.
        let free = async || is_free(&manager, "a").await && is_free(&manager, "b").await;
        eventually("both are free", free).await;
    }
}

/// The statement that waits for the lock is the transaction's first, so its snapshot predates the
/// lock.
#[tokio::test]
async fn a_transaction_with_a_snapshot_before_the_lock_is_refused() {
    let database = Database::new().await;
    let manager = database.sessions("").await;
    let mut client = database.client().await;
    for isolation in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
        let build = client.build_transaction().isolation_level(isolation);
        let mut transaction = build.start().await.unwrap();
        let refused = manager.acquire_in(&mut transaction, "a").await;
        let Err(Error::InvalidOptions(sentence)) = refused else { panic!("{refused:?}") };
        assert!(sentence.contains("read committed"), "{sentence}");
        assert!(is_free(&manager, "a").await, "and nothing stays locked");
        transaction.batch_execute("select 1").await.unwrap();
        transaction.rollback().await.unwrap();
    }
    for isolation in [IsolationLevel::ReadCommitted, IsolationLevel::ReadUncommitted] {
        let build = client.build_transaction().isolation_level(isolation);
        let mut transaction = build.start().await.unwrap();
        manager.acquire_in(&mut transaction, "a").await.unwrap();
        transaction.commit().await.unwrap();
    }
    database.nobody_locks().await;
}

/// The call does not wait, and the transaction remains usable.
#[tokio::test]
async fn a_transaction_without_a_wait_is_refused_at_once() {
    let database = Database::new().await;
    for query in ["retry=0", "retry=2&retry_delay=100ms"] {
        for manager in both(&database, query).await {
            let guard = acquire(&manager, "a").await;
            let mut client = database.client().await;
            let mut transaction = client.transaction().await.unwrap();
            // It does not wait for ten minutes.
            let refused = in_time(manager.acquire_in(&mut transaction, "a")).await;
            assert!(matches!(refused, Err(Error::Contended { .. })), "{refused:?}");
            if query.starts_with("retry=0") {
                transaction.batch_execute("select 1").await.unwrap();
            }
            transaction.rollback().await.unwrap();
            guard.release().await.unwrap();
            becomes_free(&manager, "a").await;
        }
    }
}

/// With `lock=session` the server itself grants the lock when the transaction ends, however it ends,
/// also to a claim that waits in the process for a connection.
///
/// Red without: `try_meanwhile`, which asks for the lock while another claim uses the connection.
#[tokio::test]
async fn a_transaction_that_ends_without_a_commit_wakes_a_waiter_at_once() {
    let database = Database::new().await;
    let holder = database.sessions("").await;
    let manager = database.sessions("max_sessions=1&retry_delay=20ms").await;
    let other = acquire(&holder, "other").await;
    for (first, drops) in [("a", false), ("a", true), ("other", false)] {
        let mut client = database.client().await;
        let mut transaction = client.transaction().await.unwrap();
        manager.acquire_in(&mut transaction, "a").await.unwrap();
        // In the last round, the only connection waits for another key.
        let mut waits = Vec::new();
        for key in if first == "a" { vec!["a"] } else { vec!["other", "a"] } {
            let manager = manager.clone();
            waits.push(tokio::spawn(async move { acquire(&manager, key).await }));
            database.waiting(1).await;
        }
        assert!(!is_free(&holder, "a").await);
        if drops {
            drop(transaction);
            drop(client);
        } else {
            transaction.rollback().await.unwrap();
        }
        let last = waits.pop().expect("a waiter");
        let guard = in_time(last).await.unwrap();
        guard.release().await.unwrap();
        waits.iter().for_each(tokio::task::JoinHandle::abort);
        database.waiting(0).await;
    }
    other.release().await.unwrap();
    database.nobody_locks().await;
}
