//! The server is killed, is stopped, or ends a connection.

use std::pin::pin;
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
use tokio::time::{Instant, sleep, timeout};

use super::{Database, LIMIT};

async fn nothing_left(server: &MariaDb) {
    let empty = eventually("nothing is left", async || server.left().await.is_empty());
    if timeout(LIMIT, empty).await.is_err() {
        panic!("{:?}", server.left().await);
    }
}

/// Acquires without wait budget, so the manager cannot retry.
async fn works(manager: &LockManager) {
    let outcome = manager.try_acquire("a", LockOptions::new()).await.unwrap();
    outcome.expect("it is free").release().await.unwrap();
}

#[tokio::test]
async fn a_connection_closed_while_idle_causes_no_error() {
    let database = Database::new().await;
    let manager = database.manager("heartbeat=60s").await;
    for _ in 0..3 {
        works(&manager).await;
        let ours = format!(
            "SELECT GROUP_CONCAT(id) FROM information_schema.processlist WHERE db = '{}' \
             AND id <> CONNECTION_ID()",
            database.name
        );
        let ids: Vec<String> = database.server.query(&database.name, &ours).await;
        for id in ids[0].split(',') {
            // Ending one of the listening connections may end the other.
            let _gone =
                database.server.cli(&database.name).await.query_drop(format!("KILL {id}")).await;
        }
        sleep(Duration::from_millis(50)).await;
    }
    works(&manager).await;
    database.holds_nothing().await;
}

/// A stopped server may execute a request when it continues, so the release must follow the
/// request.
#[tokio::test]
async fn an_acquire_without_an_answer_is_undone_when_the_server_resumes() {
    let server = MariaDb::start().await;
    let url = server.url_with("response_timeout=300ms");
    let manager = LockManager::connect(&url).await.unwrap();
    for round in 0..5 {
        let key = format!("a{round}");
        // Opens a connection first, so the client knows its id.
        manager.acquire("first", LockOptions::new()).await.unwrap().release().await.unwrap();
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
    let query = "connections=1&connect_timeout=10s&response_timeout=1s&ttl=60s&heartbeat=60s";
    let url = with_query(&server.url_at(&[addr]), query);
    let manager = LockManager::connect(&url).await.unwrap();
    manager.acquire("first", LockOptions::new()).await.unwrap().release().await.unwrap();
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
    let query = "connections=1&connect_timeout=10s&response_timeout=10s&heartbeat=60s";
    let store = MysqlStore::open(&for_store(&with_query(&server.url_at(&[addr]), query))).unwrap();
    let elsewhere = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let store = Arc::new(store);
    let claim = || {
        let key = LockKey::new("lock:", "a").unwrap();
        Arc::new(Claim::new(key, "service=test"))
    };
    // Connects on both runtimes; first on this one, whose connection is then held.
    let ours = claim();
    store.acquire(&AcquireRequest::new(ours.clone(), LIMIT)).await.unwrap();
    // Behind the sweep that follows the first request. Otherwise that is held, and the acquire waits
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
        let request = AcquireRequest::new(late.clone(), LIMIT * 3);
        let mut acquire = pin!(store.acquire(&request));
        // Sends it, and gives up.
        assert!(timeout(Duration::from_millis(300), &mut acquire).await.is_err());
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
        let query = "connections=1&connect_timeout=10s&response_timeout=1s&heartbeat=60s";
        let store =
            MysqlStore::open(&for_store(&with_query(&server.url_at(&[addr]), query))).unwrap();
        (server, store, held)
    });
    let claim = |key| Arc::new(Claim::new(LockKey::new("lock:", key).unwrap(), "service=test"));
    let warm = async |key| {
        let claim = claim(key);
        store.acquire(&AcquireRequest::new(claim.clone(), LIMIT)).await.unwrap();
        store.release(&[ReleaseRequest::new(claim)]).await.remove(0).unwrap();
    };
    left.block_on(warm("left"));
    let of_left = held.borrow().made;
    here.block_on(warm("here"));
    held.send_modify(|held| held.below = of_left);
    let late = claim("a");
    left.block_on(async {
        let request = AcquireRequest::new(late.clone(), LIMIT * 3);
        // Sends it, and gives up.
        assert!(timeout(Duration::from_millis(300), store.acquire(&request)).await.is_err());
    });
    here.block_on(async {
        let undo = [ReleaseRequest::new(late)];
        let undone = in_time(store.release(&undo)).await.remove(0);
        assert_eq!(undone.unwrap(), ReleaseOutcome::NotHeld);
        held.send_modify(|held| held.below = 0);
        sleep(Duration::from_millis(500)).await;
        nothing_left(&server).await;
    });
    drop((left, store));
}

/// The number of connections, and which of them are held: those with a smaller number than `below`.
#[derive(Default)]
struct Held {
    made: usize,
    below: usize,
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
            let mut switch = switch.subscribe();
            tokio::spawn(async move {
                let mut buffer = vec![0; 4096];
                while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
                    switch.wait_for(|held| nth >= held.below).await.ok();
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
    let manager = LockManager::connect(server.url_with("ttl=20s")).await.unwrap();
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
    let manager = LockManager::connect(server.url_with("ttl=20s&heartbeat=500ms")).await.unwrap();
    let other = LockManager::connect(server.url_with("ttl=20s&heartbeat=500ms")).await.unwrap();
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    let next = tokio::spawn(async move {
        let guard = other.acquire("a", LockOptions::new().wait(LIMIT * 2)).await.unwrap();
        guard.release().await.unwrap();
    });
    let line = "SELECT COUNT(*) FROM lockattr_v2_queue";
    let stands = async || server.query::<i64>("lockattr", line).await == [1];
    eventually("queued", stands).await;
    // Gives the waiter the time to receive that reply.
    sleep(Duration::from_millis(500)).await;
    server.restart().await;
    // Long before it asks again by itself, fifteen seconds after its last request.
    let hears = "SELECT COUNT(*) FROM lockattr_v2_queue \
                 WHERE IS_USED_LOCK(CONCAT('lockattr:', listener)) IS NOT NULL";
    let again = async || server.query::<i64>("lockattr", hears).await == [1];
    eventually("it listens again", again).await;
    guard.release().await.unwrap();
    let released = Instant::now();
    next.await.unwrap();
    assert!(released.elapsed() < Duration::from_secs(8), "after {:?}", released.elapsed());
    nothing_left(&server).await;
}
