//! A connection pooler: one that gives each transaction another server process is detected and
//! refused in both lock forms, and one in session mode is not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{PgBouncer, PostgresServer, bare, eventually, with_query};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_postgres::NoTls;

use super::manager;

const FORMS: [&str; 2] = ["lease", "session"];

/// Waits until a connection is refused with these words. A machine that is busy with other tests may be too slow
/// for any other reply, but none is accepted.
async fn is_refused_with(pooler: &PgBouncer, database: &str, form: &str, words: &str) {
    let url = with_query(&pooler.url(database), &format!("lock={form}&response_timeout=3s"));
    let refused = async || match LockManager::connect(&url).await {
        Ok(_) => panic!("{form}: not refused"),
        Err(Error::Store { source, .. }) => source.to_string().contains(words),
        Err(other) => panic!("{other}"),
    };
    eventually(&format!("{form}: {words}"), refused).await;
}

/// Checks that both forms are refused, with a message that says what to do.
async fn is_refused(mode: &str, size: usize, settings: &str) {
    let server = PostgresServer::shared().await;
    let (_, database) = server.new_database().await;
    for form in FORMS {
        let pooler = PgBouncer::before(server, mode, size, settings).await;
        is_refused_with(&pooler, &database, form, "transaction or statement mode").await;
    }
}

#[tokio::test]
async fn transaction_mode_is_refused_whatever_the_pool() {
    for size in [1, 2, 20] {
        for robin in ["server_round_robin = 0", "server_round_robin = 1"] {
            is_refused("transaction", size, robin).await;
        }
    }
}

#[tokio::test]
async fn statement_mode_is_refused() {
    for size in [1, 2, 20] {
        is_refused("statement", size, "").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_mode_is_refused_while_others_come_and_go() {
    let server = PostgresServer::shared().await;
    let (_, database) = server.new_database().await;
    for robin in ["server_round_robin = 0", "server_round_robin = 1"] {
        for size in [2, 20] {
            let pooler = Arc::new(PgBouncer::before(server, "transaction", size, robin).await);
            let (stop, mut others) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
            for nth in 0..6 {
                let (url, stop) = (bare(&pooler.url(&database)), stop.clone());
                others.spawn(async move {
                    while !stop.load(Ordering::Relaxed) {
                        let Ok((client, connection)) = tokio_postgres::connect(&url, NoTls).await
                        else {
                            continue;
                        };
                        let driver = tokio::spawn(connection);
                        for _ in 0..nth * 5 {
                            client.simple_query("select 1").await.ok();
                            sleep(Duration::from_millis(nth % 3)).await;
                        }
                        drop(client);
                        driver.await.ok();
                    }
                });
            }
            sleep(Duration::from_millis(100)).await;
            for form in FORMS.into_iter().cycle().take(10) {
                is_refused_with(&pooler, &database, form, "transaction or statement mode").await;
            }
            stop.store(true, Ordering::Relaxed);
            others.join_all().await;
        }
    }
}

#[tokio::test]
async fn session_mode_works() {
    let server = PostgresServer::shared().await;
    let (_, database) = server.new_database().await;
    for form in FORMS {
        let pooler = PgBouncer::before(server, "session", 20, "").await;
        let url = with_query(&pooler.url(&database), &format!("lock={form}"));
        let (one, two) = (manager(&url).await, manager(&url).await);
        let guard = one.acquire("a", LockOptions::new()).await.unwrap();
        assert!(two.try_acquire("a", LockOptions::new()).await.unwrap().is_none());
        let waiter = tokio::spawn(async move {
            let guard = two.acquire("a", LockOptions::new()).await.unwrap();
            guard.release().await.unwrap();
        });
        sleep(Duration::from_millis(200)).await;
        guard.release().await.unwrap();
        waiter.await.unwrap();
    }
}

/// The second connection never gets a server.
#[tokio::test]
async fn a_pool_in_session_mode_that_is_too_small_says_so() {
    let server = PostgresServer::shared().await;
    let (_, database) = server.new_database().await;
    for form in FORMS {
        let pooler = PgBouncer::before(server, "session", 1, "").await;
        is_refused_with(&pooler, &database, form, "too small").await;
    }
}

/// Red without: `max_sessions`. Each waiter would need a connection of the pool.
#[tokio::test]
async fn more_waiters_than_a_pool_in_session_mode_has_connections_are_all_granted() {
    let server = PostgresServer::shared().await;
    let (direct, database) = server.new_database().await;
    // The pool is as large as the docs say: `connections`, `max_sessions`, and three that probe.
    let pooler = PgBouncer::before(server, "session", 1 + 2 + 3, "").await;
    let url = with_query(
        &pooler.url(&database),
        "lock=session&connections=1&max_sessions=2&retry_delay=20ms",
    );
    let holder = manager(&with_query(&direct, "lock=session")).await;
    let waiter = LockManager::connect(&url).await.unwrap();
    let (mut held, mut tasks) = (Vec::new(), JoinSet::new());
    for nth in 0..10 {
        let key = format!("k{nth}");
        held.push(holder.acquire(&key, LockOptions::new()).await.unwrap());
        let waiter = waiter.clone();
        tasks.spawn(async move {
            waiter.acquire(&key, LockOptions::new()).await.unwrap().release().await.unwrap();
        });
    }
    let client = server.client_of(&database).await;
    let queued = "select count(*) from pg_locks where locktype = 'advisory' and not granted
        and database = (select oid from pg_database where datname = current_database())";
    let two = async || client.query_one(queued, &[]).await.unwrap().get::<_, i64>(0) == 2;
    eventually("two wait at the server", two).await;
    for guard in held {
        guard.release().await.unwrap();
    }
    assert_eq!(tasks.join_all().await.len(), 10);
}
