//! A lock inside a transaction of sqlx, from a pool that the program has anyway.

use std::time::Duration;

use lockattr::store::PostgresTransaction;
use lockattr::{Error, FencingToken, LockManager, distributed_lock};
use sqlx::postgres::{PgListener, PgPool, PgPoolOptions};
use sqlx::{Acquire, AssertSqlSafe, Connection, PgConnection, query, query_scalar};
use tokio::time::Instant;

use super::{Database, acquire, becomes_free, eventually, is_free, manager};
use lockattr_tests::{HUNG, bare, in_time, with_query};

async fn pool(url: &str) -> PgPool {
    let options = PgPoolOptions::new().max_connections(8).acquire_timeout(HUNG);
    options.connect(url).await.expect("sqlx connects")
}

/// Returns a manager of each lock form.
async fn both(database: &Database, settings: &str) -> [LockManager; 2] {
    [database.leases(settings).await, database.sessions(settings).await]
}

#[distributed_lock(key = "product:<id>", wait = "0s")]
async fn deduct(id: u64) -> Result<u64, Error> {
    Ok(id)
}

/// Red without: the advisory lock, in either statement of `InTransactions`.
#[tokio::test]
async fn it_excludes_the_attribute_until_the_transaction_ends() {
    let database = Database::new().await;
    let pool = pool(&bare(&database.url)).await;
    for manager in both(&database, "").await {
        for ends in ["commit", "rollback", "drop"] {
            let mut transaction = pool.begin().await.unwrap();
            let token = manager.acquire_in(&mut transaction, "product:42").await.unwrap();
            let refused = manager.scope(deduct(42)).await;
            assert!(matches!(refused, Err(Error::Contended { .. })), "{ends}: {refused:?}");
            assert_eq!(manager.scope(deduct(7)).await.unwrap(), 7);
            match ends {
                "commit" => transaction.commit().await.unwrap(),
                "rollback" => transaction.rollback().await.unwrap(),
                // sqlx rolls it back before it returns the connection to the pool.
                _ => drop(transaction),
            }
            let free = async || manager.scope(deduct(42)).await.is_ok();
            eventually(&format!("{ends} releases it"), free).await;
            let next = acquire(&manager, "product:42").await;
            assert!(next.fencing_token() > token, "{ends}");
            next.release().await.unwrap();
        }
    }
}

/// Red without: `pg_notify` in the statement.
#[tokio::test]
async fn a_commit_notifies_the_waiters() {
    let database = Database::new().await;
    let manager = database.leases("").await;
    let pool = pool(&bare(&database.url)).await;
    let mut listener = PgListener::connect(&database.url).await.unwrap();
    listener.listen("lockattr_f4b72165f60f5b60_ended").await.unwrap();
    let mut transaction = pool.begin().await.unwrap();
    manager.acquire_in(&mut transaction, "a").await.unwrap();
    let waits = tokio::spawn({
        let manager = manager.clone();
        async move { acquire(&manager, "a").await }
    });
    transaction.commit().await.unwrap();
    let message = in_time(listener.recv()).await.unwrap();
    assert_eq!(message.payload(), "6c6f636b3a61", "the name of the lock, in hexadecimal");
    let guard = in_time(waits).await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn the_holder_of_the_lease_excludes_a_transaction() {
    let database = Database::new().await;
    let pool = pool(&bare(&database.url)).await;
    let holders = both(&database, "").await;
    for (holder, manager) in holders.iter().zip(&both(&database, "wait=300ms").await) {
        let guard = acquire(holder, "a").await;
        // If the server has not answered by then, it is an outage.
        let refused = async || {
            let mut transaction = pool.begin().await.unwrap();
            let refused = manager.acquire_in(&mut transaction, "a").await;
            transaction.rollback().await.unwrap();
            match refused {
                Err(Error::Contended { key, .. }) => key == "a",
                Err(Error::Store { .. }) => false,
                other => panic!("{other:?}"),
            }
        };
        eventually("it is contended", refused).await;
        guard.release().await.unwrap();
        becomes_free(holder, "a").await;
    }
}

/// sqlx begins a savepoint by `begin` on a transaction.
#[tokio::test]
async fn rolling_back_a_savepoint_releases_the_lock() {
    let database = Database::new().await;
    let pool = pool(&bare(&database.url)).await;
    for manager in both(&database, "").await {
        let mut transaction = pool.begin().await.unwrap();
        let mut savepoint = transaction.begin().await.unwrap();
        manager.acquire_in(&mut savepoint, "a").await.unwrap();
        assert!(!is_free(&manager, "a").await);
        savepoint.rollback().await.unwrap();
        assert!(is_free(&manager, "a").await);
        let mut savepoint = transaction.begin().await.unwrap();
        manager.acquire_in(&mut savepoint, "b").await.unwrap();
        savepoint.commit().await.unwrap();
        assert!(!is_free(&manager, "b").await, "the outer transaction still holds it");
        transaction.commit().await.unwrap();
        assert!(is_free(&manager, "b").await);
    }
}

#[tokio::test]
async fn transactions_of_one_pool_take_turns_and_fence_their_writes() {
    let database = Database::new().await;
    let pool = pool(&bare(&database.url)).await;
    for manager in both(&database, "").await {
        query("drop table if exists counts").execute(&pool).await.unwrap();
        query("create table counts (value int, fence bigint)").execute(&pool).await.unwrap();
        query("insert into counts values (0, 0)").execute(&pool).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let (manager, pool) = (manager.clone(), pool.clone());
            tasks.spawn(async move {
                for _ in 0..5 {
                    let mut transaction = pool.begin().await.unwrap();
                    let token = manager.acquire_in(&mut transaction, "counts").await.unwrap();
                    let ask = query_scalar::<_, i32>("select value from counts");
                    let value = ask.fetch_one(&mut *transaction).await.unwrap();
                    tokio::task::yield_now().await;
                    let set = "update counts set value = $1, fence = $2 where fence < $2";
                    let set = query(set).bind(value + 1).bind(token);
                    let wrote = set.execute(&mut *transaction).await.unwrap();
                    assert_eq!(wrote.rows_affected(), 1, "tokens grow in the order of the locks");
                    transaction.commit().await.unwrap();
                }
            });
        }
        tasks.join_all().await;
        let value: i32 = query_scalar("select value from counts").fetch_one(&pool).await.unwrap();
        assert_eq!(value, 20);
        let last: FencingToken =
            query_scalar("select fence from counts").fetch_one(&pool).await.unwrap();
        assert!(acquire(&manager, "counts").await.fencing_token() > last);
    }
}

#[tokio::test]
async fn a_transaction_in_another_database_is_refused() {
    let (database, other) = (Database::new().await, Database::new().await);
    let pool = pool(&other.url).await;
    for manager in both(&database, "").await {
        let mut transaction = pool.begin().await.unwrap();
        let refused = manager.acquire_in(&mut transaction, "a").await;
        let Err(Error::InvalidOptions(sentence)) = refused else { panic!("{refused:?}") };
        assert!(sentence.contains("database"), "{sentence}");
        assert!(is_free(&manager, "a").await, "and nothing stays locked");
    }
}

/// A client whose type does not say whether a transaction is open, as that of diesel-async.
struct Outside(PgConnection);

impl PostgresTransaction for Outside {
    type Error = sqlx::Error;

    async fn ask(&mut self, statement: &str, number: i64) -> Result<i32, sqlx::Error> {
        query_scalar(AssertSqlSafe(statement)).bind(number).fetch_one(&mut self.0).await
    }
}

/// Red without: the look at `pg_locks` after the statement.
#[tokio::test]
async fn a_connection_without_a_transaction_is_refused() {
    let database = Database::new().await;
    for manager in both(&database, "").await {
        let mut outside = Outside(PgConnection::connect(&database.url).await.unwrap());
        let refused = manager.acquire_in(&mut outside, "a").await;
        let Err(Error::InvalidOptions(sentence)) = refused else { panic!("{refused:?}") };
        assert!(sentence.contains("no transaction is open"), "{sentence}");
        assert!(is_free(&manager, "a").await, "and nothing stays locked");
    }
}

/// The statement names the key, so a prepared one would never be used again.
///
/// Red without: `persistent(false)`.
#[tokio::test]
async fn it_takes_no_place_among_the_prepared_statements() {
    let database = Database::new().await;
    let pool = pool(&bare(&database.url)).await;
    for manager in both(&database, "").await {
        let mut transaction = pool.begin().await.unwrap();
        for key in ["a", "b", "c"] {
            manager.acquire_in(&mut transaction, key).await.unwrap();
        }
        let kept = "select count(*) from pg_prepared_statements where statement ~ 'advisory'";
        let kept: i64 =
            query_scalar(kept).persistent(false).fetch_one(&mut *transaction).await.unwrap();
        assert_eq!(kept, 0);
    }
}

/// The session is ended by an administrator after the wait would have ended, while the database is
/// available.
///
/// Red without: the code of sqlx's error in `wait_ended`.
#[tokio::test]
async fn a_session_that_is_ended_late_is_an_outage() {
    let database = Database::new().await;
    let (wait, pool) = (Duration::from_secs(10), pool(&bare(&database.url)).await);
    let holder = database.sessions("").await;
    let here = manager(&with_query(&database.url, "lock=session&wait=10s")).await;
    let guard = acquire(&holder, "a").await;
    let mut transaction = pool.begin().await.unwrap();
    let pid = query_scalar("select pg_backend_pid()").fetch_one(&mut *transaction);
    let pid: i32 = pid.await.unwrap();
    let ends = async {
        database.waiting(1).await;
        database.server.stop_session(pid);
        let began = Instant::now();
        eventually("the wait is over", async || began.elapsed() > wait).await;
        database.client().await.execute("select pg_terminate_backend($1)", &[&pid]).await.unwrap();
        database.server.continue_session(pid);
    };
    let both = async { tokio::join!(here.acquire_in(&mut transaction, "a"), ends) };
    let (outcome, ()) = in_time(both).await;
    let Err(Error::Store { key, source }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(key, "a");
    assert!(source.to_string().contains("terminating connection"), "{source}");
    guard.release().await.unwrap();
}
