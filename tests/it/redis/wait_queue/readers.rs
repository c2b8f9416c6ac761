//! Readers that a writer of their process has let in share the lock with other processes, also in
//! the server.

use std::time::Duration;

use lockattr::{LockGuard, LockManager, LockOptions, Mode};
use lockattr_tests::{
    Fault, Proxy, RedisServer, StoppedClock, Wire, assert_nothing_left, eventually, in_time,
    with_query,
};
use tokio::task::JoinSet;

const SECOND: Duration = Duration::from_secs(1);

fn reads() -> LockOptions {
    LockOptions::new().mode(Mode::Shared)
}

/// No waiter asks again during the test, or comes before the reader of the writer's process.
const PARAMETERS: &str = "wait=10h&ttl=1h&retry_delay=1h&max_handoff_time=10h";

async fn manager(server: &RedisServer) -> LockManager {
    LockManager::connect(server.url_with(PARAMETERS)).await.unwrap()
}

/// A writer, and a reader behind it: when the writer releases, the reader gets the lock under the
/// writer's lease.
async fn writer_and_reader(manager: &LockManager) -> (LockGuard, JoinSet<LockGuard>) {
    let writer = manager.acquire("a", LockOptions::new()).await.unwrap();
    let (manager, mut reader) = (manager.clone(), JoinSet::new());
    reader.spawn(async move { manager.acquire("a", reads()).await.unwrap() });
    // It has joined the queue once it has been polled, on this thread.
    tokio::task::yield_now().await;
    (writer, reader)
}

/// Waits until the lock is a shared one.
async fn is_shared(server: &RedisServer) {
    let cli = server.cli().await;
    let shared = async || cli.query::<String>(&["TYPE", "lock:a"]).await == "zset";
    eventually("it is shared", shared).await;
}

/// More readers than one script run serves.
#[tokio::test]
async fn readers_of_many_processes_that_wait_are_let_in_by_the_renewal() {
    let server = RedisServer::start().await;
    // None of them asks again.
    let clock = StoppedClock::new();
    let here = manager(&server).await;
    let (writer, mut inside) = writer_and_reader(&here).await;
    let mut others = JoinSet::new();
    for _ in 0..30 {
        let there = manager(&server).await;
        others.spawn(async move { (there.acquire("a", reads()).await.unwrap(), there) });
    }
    let cli = server.cli().await;
    let line = ["ZCARD", "lockattr:line-of:{lock:a}"];
    eventually("all wait", async || cli.query::<u64>(&line).await == 30).await;
    writer.release().await.unwrap();
    let inside = inside.join_next().await.unwrap().unwrap();
    let others = in_time(others.join_all()).await;
    drop(clock);
    inside.ensure_held().unwrap();
    let members: Vec<String> = cli.query(&["ZRANGE", "lock:a", "0", "-1"]).await;
    assert_eq!(members.len(), 31);
    assert!(members.iter().all(|value| value[32..].starts_with(" mode=shared ")), "{members:?}");
    for (other, _there) in others {
        assert!(other.fencing_token() > inside.fencing_token());
        other.release().await.unwrap();
    }
    inside.release().await.unwrap();
    drop(here);
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_server_out_of_memory_still_shares_the_lock() {
    let server = RedisServer::start().await;
    let (here, there) = (manager(&server).await, manager(&server).await);
    let (writer, mut inside) = writer_and_reader(&here).await;
    let cli = server.cli().await;
    cli.query::<()>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    writer.release().await.unwrap();
    let inside = inside.join_next().await.unwrap().unwrap();
    is_shared(&server).await;
    cli.query::<()>(&["CONFIG", "SET", "maxmemory", "0"]).await;
    let other = there.try_acquire("a", reads()).await.unwrap().expect("it can be shared");
    inside.release().await.unwrap();
    other.release().await.unwrap();
    drop((here, there));
    assert_nothing_left(&server).await;
}

/// The server learns that the readers share the lock together with their release, or after it.
#[tokio::test]
async fn a_reader_that_leaves_before_the_server_knows_that_it_shares_leaves_nothing() {
    let server = RedisServer::start().await;
    let here = manager(&server).await;
    for _ in 0..200 {
        let (writer, mut inside) = writer_and_reader(&here).await;
        writer.release().await.unwrap();
        let inside = inside.join_next().await.unwrap().unwrap();
        inside.release().await.unwrap();
    }
    drop(here);
    assert_nothing_left(&server).await;
}

/// The renewal that would make the lock a shared one is refused.
#[tokio::test]
async fn a_reader_that_the_server_takes_for_a_writer_leaves_nothing() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let here = with_query(&server.url_through(&proxy), PARAMETERS);
    let here = LockManager::connect(here).await.unwrap();
    let (writer, mut inside) = writer_and_reader(&here).await;
    proxy.always("renew", Fault::Answer("LOADING".to_owned()));
    writer.release().await.unwrap();
    let inside = inside.join_next().await.unwrap().unwrap();
    eventually("it shares the lock", async || proxy.answered("renew") > 0).await;
    inside.release().await.unwrap();
    drop(here);
    assert_nothing_left(&server).await;
}

/// A reader extends the lease while the lock becomes a shared one.
#[tokio::test]
async fn what_a_reader_has_extended_meanwhile_is_not_shortened() {
    let server = RedisServer::start().await;
    let wire = Wire::start(server.addr()).await;
    let parameters = "wait=10h&ttl=10m&retry_delay=1h&max_handoff_time=10h";
    let here = format!("redis://{}/?{parameters}", wire.addr());
    let here = LockManager::connect(here).await.unwrap();
    let (writer, mut inside) = writer_and_reader(&here).await;
    // Behind the reader, so that the lease stays exclusive for a moment.
    let next = tokio::spawn({
        let here = here.clone();
        async move { here.acquire("a", LockOptions::new()).await }
    });
    tokio::task::yield_now().await;
    wire.delay(Duration::from_millis(100));
    writer.release().await.unwrap();
    let inside = inside.join_next().await.unwrap().unwrap();
    inside.extend(3_600 * SECOND).await.unwrap();
    is_shared(&server).await;
    let cli = server.cli().await;
    assert!(cli.query::<u64>(&["PTTL", "lock:a"]).await > 3_000_000);
    assert!(inside.remaining() > 3_000 * SECOND);
    next.abort();
    inside.release().await.unwrap();
    drop(here);
    assert_nothing_left(&server).await;
}

/// The writer's last renewal arrives after the one that made the lock a shared one. In the soak, a
/// cluster's node was stopped in between, and no process could acquire that lock any more.
#[tokio::test]
async fn a_writers_renewal_that_arrives_late_leaves_the_lock_to_its_readers() {
    let server = RedisServer::start().await;
    let (here, there) = (manager(&server).await, manager(&server).await);
    let (writer, mut inside) = writer_and_reader(&here).await;
    let cli = server.cli().await;
    let value = cli.held_value("lock:a").await.unwrap();
    writer.release().await.unwrap();
    let inside = inside.join_next().await.unwrap().unwrap();
    is_shared(&server).await;
    let words = ["2", "lock:a", "lock:a", "1", &value, "20000", "0"];
    assert_eq!(cli.arrives_late::<String>("renew", &words).await, "1");

    let shared = [&value[..32], " mode=shared", &value[32..]].concat();
    assert_eq!(cli.query::<Vec<String>>(&["ZRANGE", "lock:a", "0", "-1"]).await, [shared]);
    let other = there.try_acquire("a", reads()).await.unwrap().expect("it can be shared");
    inside.release().await.unwrap();
    other.release().await.unwrap();
    let next = there.try_acquire("a", LockOptions::new()).await.unwrap();
    next.expect("the lock is free").release().await.unwrap();
    drop((here, there));
    assert_nothing_left(&server).await;
}
