//! Someone interferes with the requests: kills, keeps or loses them, or lets them race.

use std::time::Duration;

use lockattr::{Error, LockManager, LostReason};
use lockattr_tests::{Proxy, RedisServer, assert_nothing_left, eventually, in_time, pause, skip};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{
    TTL, is_lost, is_renewed, is_renewed_now, lease, manager, renewal_is_due, retry_is_due,
    wait_until_lockable,
};

/// Longer than the response timeout, and shorter than what is left of a lease after a renewal was due.
const SILENCE: Duration = Duration::from_secs(90);

/// The commands that release locks, whatever the server.
const RELEASES: [&str; 3] = ["evalsha", "delex", "delifeq"];

/// The client's wall clock does not matter: the server receives durations, never points in time.
#[tokio::test]
async fn no_command_carries_the_time_of_day() {
    let server = RedisServer::builder().line("slowlog-log-slower-than 0").start().await;
    let (cli, manager) = (server.cli().await, manager(&server).await);
    let ttl = Duration::from_millis(1_234_567);
    let guard = manager.acquire("a", lease(ttl)).await.unwrap();
    is_renewed(&guard, ttl, 1).await;
    guard.release().await.unwrap();
    type Entry = (u64, u64, u64, Vec<String>, String, String);
    let log: Vec<Entry> = cli.query(&["SLOWLOG", "GET", "-1"]).await;
    let mut seen = Vec::new();
    for (.., words, _, _) in log.iter().rev() {
        if !RELEASES.contains(&words[0].to_lowercase().as_str()) || words.len() < 3 {
            continue;
        }
        // The words after the digest. The label contains the time of the acquisition, for people.
        let rest = words[2..].iter().filter(|word| !word.contains("since="));
        let rest: Vec<&str> = rest.map(String::as_str).collect();
        if seen.last() != Some(&rest) {
            seen.push(rest);
        }
    }
    let keys = ["3", "lockattr:fence", "lock:a", "lockattr:line-of:{lock:a}"];
    let acquire = [&keys[..], &["1234567", "x", "+"]].concat();
    assert_eq!(seen.remove(0), acquire);
    assert_eq!(seen.remove(0), ["2", "lock:a", "lock:a", "1", "1234567", "0"]);
    // By a script, by `DELEX lock:a IFEQ …`, or by `DELIFEQ lock:a …`.
    let [seen] = seen.as_slice() else { panic!("{seen:?}") };
    assert!(*seen == ["1", "lock:a"] || *seen == ["IFEQ"] || seen.is_empty(), "{seen:?}");
    assert_nothing_left(&server).await;
}

/// The server has read the request, and closes the connection instead of answering it.
#[tokio::test]
async fn connections_killed_under_an_acquire_a_renewal_and_a_release() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    // The kill must end the requests, not the client's own timeout.
    let manager = LockManager::connect(server.url_with("connections=1"));
    let manager = manager.await.unwrap();
    let asks_and_is_killed = async || {
        let asks = async || cli.info("blocked_clients").await != "0";
        eventually("it sends its request", asks).await;
        assert!(cli.client_kill_all_others().await > 0);
        cli.query::<()>(&["CLIENT", "UNPAUSE"]).await;
    };
    let pause_writes = async || cli.query::<()>(&["CLIENT", "PAUSE", "3600000", "WRITE"]).await;

    pause_writes().await;
    let acquiring = manager.acquire("a", lease(TTL));
    let guard = tokio::join!(acquiring, asks_and_is_killed()).0.unwrap();
    pause_writes().await;
    renewal_is_due(TTL);
    asks_and_is_killed().await;
    retry_is_due();
    is_renewed_now(&guard, TTL).await;
    guard.extend(TTL).await.unwrap();
    pause_writes().await;
    let released = tokio::join!(guard.release(), asks_and_is_killed()).0;
    assert!(matches!(released, Err(Error::Store { .. })), "{released:?}");
    // Long before the lease would have expired.
    assert_nothing_left(&server).await;
    wait_until_lockable(&manager).await;
}

/// A silent server. The timer reports the end of a short lease, not the late answer; a longer lease
/// goes on.
#[tokio::test]
async fn a_pause_longer_than_one_lease_and_shorter_than_another() {
    let server = RedisServer::start().await;
    let manager = manager(&server).await;
    let long = manager.acquire("long", lease(TTL)).await.unwrap();
    let short = manager.acquire("short", lease(TTL / 6)).await.unwrap();
    server.stop_signal();
    renewal_is_due(TTL);
    is_lost(&short, LostReason::Expired).await;
    // The renewal gets no answer.
    skip(SILENCE);
    pause(Duration::from_millis(100)).await;
    assert!(long.remaining() < TTL * 3 / 5);
    long.ensure_held().expect("unknown, not lost");
    server.continue_signal();
    retry_is_due();
    is_renewed_now(&long, TTL).await;
    long.release().await.unwrap();
    drop(short);
    wait_until_lockable(&manager).await;
    assert_nothing_left(&server).await;
}

/// During an ordered failover, the server accepts every write but answers none, while it answers
/// everything else.
#[tokio::test]
async fn a_pause_of_writes() {
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, manager(&server).await);
    let long = manager.acquire("long", lease(TTL)).await.unwrap();
    let short = manager.acquire("short", lease(TTL / 6)).await.unwrap();
    cli.query::<()>(&["CLIENT", "PAUSE", "3600000", "WRITE"]).await;
    // Still under way when writes go on, so it is granted then.
    let other = LockManager::connect(server.url()).await.unwrap();
    let asks = tokio::spawn({
        let other = other.clone();
        async move { other.acquire("a", lease(TTL).retry(0)).await.map(drop) }
    });
    eventually("it asks", async || cli.info("blocked_clients").await != "0").await;
    skip(SILENCE);
    let none = in_time(asks).await.unwrap().unwrap_err();
    assert!(matches!(none, Error::Store { .. }), "{none:?}");
    renewal_is_due(TTL);
    is_lost(&short, LostReason::Expired).await;
    long.ensure_held().expect("unknown, not lost");
    cli.query::<()>(&["CLIENT", "UNPAUSE"]).await;
    retry_is_due();
    is_renewed_now(&long, TTL).await;
    long.release().await.unwrap();
    drop(short);
    // Until then its connection lives, or the server would forget the request.
    wait_until_lockable(&manager).await;
    drop(other);
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_release_sent_again_after_its_answer_was_lost_does_not_free_the_next_holder() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let manager = LockManager::connect(server.url_through(&proxy)).await.unwrap();
    let cli = server.cli().await;
    let guard = manager.acquire("a", lease(TTL)).await.unwrap();
    proxy.swallow_replies();
    let released = tokio::spawn(guard.release());
    eventually("the server releases it", async || cli.value("lock:a").await.is_none()).await;
    skip(SILENCE);
    let released = in_time(released).await.unwrap();
    assert!(matches!(released, Err(Error::Store { .. })), "{released:?}");
    let other = LockManager::connect(server.url()).await.unwrap();
    let fixed = lease(TTL).renew(false).retry(0);
    let next = other.acquire("a", fixed).await.expect("the server did release it");

    cli.reset_stats().await;
    proxy.pass();
    proxy.cut().await;
    let sent_again = async || {
        let stats = cli.commandstats().await;
        RELEASES.iter().any(|release| stats.contains_key(*release))
    };
    eventually("the release is sent again", sent_again).await;
    next.extend(TTL).await.expect("freed by a release that was not its own");
    next.release().await.unwrap();
    wait_until_lockable(&manager).await;
    assert_nothing_left(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_renewal_that_races_a_release_resurrects_nothing() {
    let server = RedisServer::start().await;
    // With a long timeout: a busy machine must not turn an answer into an unknown outcome.
    let manager = LockManager::connect(server.url()).await.unwrap();
    let cli = server.cli().await;
    let mut tasks = JoinSet::new();
    for task in 0..60 {
        let (manager, cli) = (manager.clone(), cli.clone());
        tasks.spawn(async move {
            let (key, ttl) = (format!("{task}"), Duration::from_millis(30));
            for _ in 0..100 {
                let guard = manager.acquire(&key, lease(ttl)).await.unwrap();
                // Until its first renewal is due: this is the race.
                sleep(ttl / 3).await;
                // On a busy machine so short a lease is lost now and then; it is released as well.
                let released = guard.release().await;
                assert!(matches!(released, Ok(()) | Err(Error::Lost { .. })), "{released:?}");
                assert_eq!(cli.value(&format!("lock:{key}")).await, None, "back from the dead");
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(cli.keys("lock:*").await, [""; 0]);
}
