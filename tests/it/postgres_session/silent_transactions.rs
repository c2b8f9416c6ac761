//! A lock inside a transaction whose server does not answer: an outage, and not a lock that is held.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::time::Duration;

use lockattr::store::PostgresTransaction;
use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Engine, PostgresServer, eventually, in_time, with_query};
use tokio::time::sleep;

use super::{Database, acquire, becomes_free, manager};
use crate::support::connected;

/// A transaction whose connection says nothing any more.
struct Silent;

impl PostgresTransaction for Silent {
    type Error = Infallible;

    async fn ask(&mut self, _statement: &str, _number: i64) -> Result<i32, Infallible> {
        pending().await
    }
}

/// A transaction of another client, whose errors have no code.
struct OfAnotherClient<'a>(tokio_postgres::Transaction<'a>);

impl PostgresTransaction for OfAnotherClient<'_> {
    type Error = io::Error;

    async fn ask(&mut self, statement: &str, number: i64) -> Result<i32, io::Error> {
        let answer = self.0.ask(statement, number).await;
        answer.map_err(|error| io::Error::other(error.to_string()))
    }
}

/// Returns a manager, and another process' manager that holds the lock.
async fn both(server: &PostgresServer, query: &str) -> (LockManager, LockManager) {
    let url = server.url_with(&format!("lock=session&{query}"));
    let holder = manager(&server.url_with("lock=session")).await;
    (connected(&url).await, holder)
}

async fn waits(server: &PostgresServer) {
    let client = server.client().await;
    let count = "select count(*) from pg_locks where locktype = 'advisory' and not granted";
    let there = async || client.query_one(count, &[]).await.unwrap().get::<_, i64>(0) == 1;
    eventually("it waits", there).await;
}

fn is_an_outage(outcome: &Result<lockattr::FencingToken, Error>) {
    let Err(Error::Store { key, .. }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(key, "a");
}

/// Red without: the limit of `ask`, with `lock=session` and with leases.
#[tokio::test]
async fn a_transaction_without_an_answer_is_an_outage() {
    let database = Database::new().await;
    let query = "ttl=500ms&wait=100ms&response_timeout=500ms";
    for form in ["session", "lease"] {
        let manager = connected(&with_query(&database.url, &format!("lock={form}&{query}"))).await;
        is_an_outage(&in_time(manager.acquire_in(&mut Silent, "a")).await);
        let free =
            async || matches!(manager.try_acquire("a", LockOptions::new()).await, Ok(Some(_)));
        eventually("it is free", free).await;
    }
}

/// Red without: the limit of `ask`.
#[tokio::test]
async fn a_server_that_is_stopped_during_the_wait_is_an_outage() {
    let server = PostgresServer::start().await;
    let (here, holder) = both(&server, "wait=10s&response_timeout=500ms").await;
    let _guard = acquire(&holder, "a").await;
    let mut client = server.client().await;
    let mut transaction = client.transaction().await.unwrap();
    let stops = async {
        waits(&server).await;
        server.freeze();
    };
    let both = async { tokio::join!(here.acquire_in(&mut transaction, "a"), stops) };
    let (outcome, ()) = in_time(both).await;
    is_an_outage(&outcome);
    server.thaw();
}

/// The connection ends after the wait would have ended.
///
/// Red without: the error's code.
#[tokio::test]
async fn a_connection_that_ends_late_is_an_outage() {
    let server = PostgresServer::start().await;
    let (here, holder) = both(&server, "wait=10s").await;
    let _guard = acquire(&holder, "a").await;
    let mut client = server.client().await;
    let mut transaction = client.transaction().await.unwrap();
    let pid = transaction.query_one("select pg_backend_pid()", &[]).await.unwrap().get(0);
    let dies = async {
        waits(&server).await;
        server.stop_session(pid);
        // The wait itself has to pass.
        sleep(Duration::from_millis(10_200)).await;
        server.kill();
    };
    let both = async { tokio::join!(here.acquire_in(&mut transaction, "a"), dies) };
    let (outcome, ()) = in_time(both).await;
    is_an_outage(&outcome);
}

/// Red without: the query that replaces the code.
#[tokio::test]
async fn a_wait_that_ends_is_contended_whatever_the_client_and_an_outage_is_none() {
    let server = PostgresServer::start().await;
    let (here, holder) = both(&server, "wait=300ms").await;
    let guard = acquire(&holder, "a").await;
    let mut client = server.client().await;
    let mut transaction = OfAnotherClient(client.transaction().await.unwrap());
    let outcome = here.acquire_in(&mut transaction, "a").await;
    assert!(matches!(outcome, Err(Error::Contended { .. })), "{outcome:?}");
    transaction.0.rollback().await.unwrap();
    guard.ensure_held().unwrap();
    guard.release().await.unwrap();
    becomes_free(&here, "a").await;
}

/// With leases, the call waits in the queue of the leases first.
#[tokio::test]
async fn a_server_that_dies_while_the_transaction_waits_for_a_lease_is_an_outage() {
    let server = PostgresServer::start().await;
    let holder = manager(&server.url()).await;
    let here = connected(&server.url_with("wait=10s&response_timeout=500ms")).await;
    let _guard = acquire(&holder, "a").await;
    let mut client = server.client().await;
    let mut transaction = client.transaction().await.unwrap();
    let dies = async {
        let client = server.client().await;
        let count = "select count(*) from lockattr_queue";
        let there = async || client.query_one(count, &[]).await.unwrap().get::<_, i64>(0) == 1;
        eventually("it waits", there).await;
        server.kill();
    };
    let both = async { tokio::join!(here.acquire_in(&mut transaction, "a"), dies) };
    let (outcome, ()) = in_time(both).await;
    is_an_outage(&outcome);
}
