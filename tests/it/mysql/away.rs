//! The server is killed, is stopped, or ends a connection.

use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{
    AcquireRequest, Claim, LockKey, MysqlStore, ReleaseOutcome, ReleaseRequest, Store as _,
};
use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Engine, MariaDb, eventually, for_store, in_time, with_query};
use mysql_async::prelude::Queryable;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::{Database, HOUR};
use crate::support::connected;

async fn nothing_left(server: &MariaDb) {
    eventually("nothing is left", async || server.left().await.is_empty()).await;
}

/// Acquires without wait budget, so the manager cannot retry.
async fn works(manager: &LockManager) {
    let outcome = manager.try_acquire("a", LockOptions::new()).await.unwrap();
    outcome.expect("it is free").release().await.unwrap();
}

#[tokio::test]
async fn a_connection_closed_while_idle_causes_no_error() {
    let database = Database::new().await;
    let manager = database.manager("heartbeat=1h").await;
    for _ in 0..3 {
        works(&manager).await;
        let ours = "SELECT id FROM information_schema.processlist WHERE db = DATABASE() \
                    AND id <> CONNECTION_ID()";
        let ids = database.server.query::<i64>(&database.name, ours).await;
        for id in &ids {
            // Ending one of the listening connections may end the other.
            let _gone =
                database.server.cli(&database.name).await.query_drop(format!("KILL {id}")).await;
        }
        let ended = async || {
            let there = database.server.query::<i64>(&database.name, ours).await;
            ids.iter().all(|id| !there.contains(id))
        };
        eventually("the server has closed them", ended).await;
    }
    works(&manager).await;
    database.holds_nothing().await;
}

/// A stopped server may execute a request when it continues, so the release must follow the
/// request.
#[tokio::test]
async fn an_acquire_without_an_answer_is_undone_when_the_server_resumes() {
    let server = MariaDb::start().await;
    let url = server.url_with("response_timeout=300ms&heartbeat=1h");
    for round in 0..5 {
        let key = format!("a{round}");
        // Opens a connection first, so the client knows its id.
        let manager = connected(&url).await;
        server.freeze();
        let outcome = manager.acquire(&key, LockOptions::new().wait(Duration::ZERO)).await;
        assert!(matches!(outcome, Err(Error::Store { .. })), "{outcome:?}");
        server.thaw();
        nothing_left(&server).await;
        sleep(Duration::from_millis(200)).await;
        nothing_left(&server).await;
    }
}

/// The same when the network to the server is silent on one connection: a release over another
/// connection may arrive first.
#[tokio::test]
async fn a_request_that_arrives_after_its_release_has_no_effect() {
    let server = MariaDb::start().await;
    let (addr, held) = way_to(server.addr()).await;
    let query = "connections=1&response_timeout=1s&heartbeat=1h";
    let url = with_query(&server.url_at(&[addr]), query);
    let manager = connected(&url).await;
    // Holds all existing connections, but no new ones.
    held.send_modify(|held| held.below = held.made);
    let before = held.borrow().made;
    let outcome = manager.acquire("a", LockOptions::new().wait(Duration::ZERO)).await;
    assert!(matches!(outcome, Err(Error::Store { .. })), "{outcome:?}");
    let anew = async || held.borrow().made > before;
    eventually("the release has a connection of its own", anew).await;
    sleep(Duration::from_secs(1)).await;
    held.send_modify(|held| held.below = 0);
    sleep(Duration::from_millis(500)).await;
    nothing_left(&server).await;
}

/// The same if another runtime sends the release, whose connection is not silent.
#[tokio::test]
async fn a_release_from_another_runtime_does_not_overtake_the_acquire_that_it_undoes() {
    let server = MariaDb::start().await;
    let (addr, held) = way_to(server.addr()).await;
    let query = "connections=1&heartbeat=1h";
    let store = MysqlStore::open(&for_store(&with_query(&server.url_at(&[addr]), query))).unwrap();
    let elsewhere = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let store = Arc::new(store);
    let claim = || {
        let key = LockKey::new("lock:", "a").unwrap();
        Arc::new(Claim::new(key, "service=test"))
    };
    // Connects on both runtimes; first on this one, whose connection is then held.
    let ours = claim();
    store.acquire(&AcquireRequest::new(ours.clone(), HOUR)).await.unwrap();
    // Behind the sweep of a new connection. Otherwise that is held, and the acquire waits
    // in the process, from where it is not sent once its caller has gone.
    store.ping().await.unwrap();
    held.send_modify(|held| held.below = held.made);
    let there = store.clone();
    elsewhere
        .spawn(async move { there.release(&[ReleaseRequest::new(ours)]).await })
        .await
        .unwrap();
    let late = claim();
    {
        let request = AcquireRequest::new(late.clone(), HOUR);
        gives_up_once_sent(store.acquire(&request), &held).await;
    }
    let there = store.clone();
    let undo =
        elsewhere.spawn(async move { there.release(&[ReleaseRequest::new(late)]).await.remove(0) });
    sleep(Duration::from_millis(300)).await;
    held.send_modify(|held| held.below = 0);
    in_time(undo).await.unwrap().unwrap();
    nothing_left(&server).await;
    elsewhere.shutdown_background();
}

/// The same if no thread drives the runtime of the acquire any more.
///
/// Red without: the end of its session.
#[test]
fn a_release_ends_the_session_of_a_runtime_that_is_not_driven() {
    let left = Builder::new_current_thread().enable_all().build().unwrap();
    let here = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (server, store, held) = here.block_on(async {
        let server = MariaDb::start().await;
        let (addr, held) = way_to(server.addr()).await;
        let query = "connections=1&response_timeout=1s&heartbeat=1h";
        let store =
            MysqlStore::open(&for_store(&with_query(&server.url_at(&[addr]), query))).unwrap();
        (server, store, held)
    });
    let claim = |key| Arc::new(Claim::new(LockKey::new("lock:", key).unwrap(), "service=test"));
    // A server that is busy with other tests may answer late.
    let warm = async |key| {
        let claim = claim(key);
        let request = AcquireRequest::new(claim.clone(), HOUR);
        eventually("acquired", async || store.acquire(&request).await.is_ok()).await;
        let release = [ReleaseRequest::new(claim)];
        eventually("released", async || store.release(&release).await.remove(0).is_ok()).await;
    };
    left.block_on(warm("left"));
    let of_left = held.borrow().made;
    here.block_on(warm("here"));
    held.send_modify(|held| held.below = of_left);
    let late = claim("a");
    left.block_on(async {
        let request = AcquireRequest::new(late.clone(), HOUR);
        gives_up_once_sent(store.acquire(&request), &held).await;
    });
    here.block_on(async {
        let undo = [ReleaseRequest::new(late)];
        let undone = async || match store.release(&undo).await.remove(0) {
            Ok(outcome) => {
                assert_eq!(outcome, ReleaseOutcome::NotHeld);
                true
            }
            Err(_) => false,
        };
        eventually("undone", undone).await;
        held.send_modify(|held| held.below = 0);
        sleep(Duration::from_millis(500)).await;
        nothing_left(&server).await;
    });
    drop((left, store));
}

/// Drops the request once the proxy holds it.
async fn gives_up_once_sent<T>(request: impl Future<Output = T>, held: &watch::Sender<Held>) {
    let mut changes = held.subscribe();
    let before = held.borrow().caught;
    tokio::select! {
        _ = request => panic!("answered"),
        caught = in_time(changes.wait_for(|held| held.caught > before)) => drop(caught.unwrap()),
    }
}

/// The number of connections; which of them are held: those with a smaller number than `below`; and how often
/// bytes have come that were held.
#[derive(Default)]
struct Held {
    made: usize,
    below: usize,
    caught: usize,
}

/// Starts a proxy that can hold what clients send on some of their connections.
async fn way_to(server: String) -> (String, watch::Sender<Held>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let held = watch::Sender::<Held>::default();
    let switch = held.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = TcpStream::connect(&server).await else { continue };
            let nth = switch.borrow().made;
            switch.send_modify(|held| held.made += 1);
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            tokio::spawn(async move { copy(&mut from_server, &mut to_client).await });
            let (switch, mut changes) = (switch.clone(), switch.subscribe());
            tokio::spawn(async move {
                let mut buffer = vec![0; 4096];
                while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
                    switch.send_if_modified(|held| {
                        let is_held = nth < held.below;
                        held.caught += usize::from(is_held);
                        is_held
                    });
                    changes.wait_for(|held| nth >= held.below).await.ok();
                    if to_server.write_all(&buffer[..count]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (addr, held)
}

/// Committed rows survive, and a release on a dead connection is sent again.
#[tokio::test]
async fn a_lock_outlives_a_restart_of_the_server() {
    let server = MariaDb::start().await;
    let manager = LockManager::connect(server.url()).await.unwrap();
    let other = LockManager::connect(server.url()).await.unwrap();
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    server.restart().await;
    let asked = async || other.try_acquire("a", LockOptions::new()).await;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(1) {
        assert!(!matches!(asked().await, Ok(Some(_))), "granted twice");
    }
    guard.ensure_held().unwrap();
    guard.release().await.unwrap();
    other.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
    nothing_left(&server).await;
}

#[tokio::test]
async fn a_waiter_outlives_a_restart_of_the_server() {
    let server = MariaDb::start().await;
    let manager = LockManager::connect(server.url()).await.unwrap();
    let other = LockManager::connect(server.url()).await.unwrap();
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    let next = tokio::spawn(async move {
        let guard = other.acquire("a", LockOptions::new()).await.unwrap();
        guard.release().await.unwrap();
    });
    let line = "SELECT COUNT(*) FROM lockattr_v2_queue";
    let stands = async || server.query::<i64>("lockattr", line).await == [1];
    eventually("queued", stands).await;
    server.restart().await;
    let hears = "SELECT COUNT(*) FROM lockattr_v2_queue \
                 WHERE IS_USED_LOCK(CONCAT('lockattr:', listener)) IS NOT NULL";
    let again = async || server.query::<i64>("lockattr", hears).await == [1];
    eventually("it listens again", again).await;
    guard.release().await.unwrap();
    in_time(next).await.unwrap();
    nothing_left(&server).await;
}
