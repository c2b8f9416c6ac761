//! Someone interferes with a held lock: its key, its end, or its server's data.

mod requests;

use std::time::Duration;

use lockattr::{Error, LockGuard, LockManager, LockOptions, LostReason};
use lockattr_tests::{RedisServer, assert_nothing_left, eventually, in_time, skip};

/// Longer than any test here takes. The tests move the clock to what comes later.
const TTL: Duration = Duration::from_secs(600);

async fn manager(server: &RedisServer) -> LockManager {
    // A moved clock makes no request late but those that are asked for.
    LockManager::connect(server.url_with("heartbeat=10h")).await.unwrap()
}

fn lease(ttl: Duration) -> LockOptions {
    LockOptions::new().ttl(ttl)
}

async fn wait_until_lockable(manager: &LockManager) {
    manager.acquire("again", LockOptions::new()).await.unwrap().release().await.unwrap();
}

/// Waits for the loss to be reported, and checks its reason: a renewal found out (`Taken`), or the
/// deadline passed (`Expired`).
async fn is_lost(guard: &LockGuard, expected: LostReason) {
    in_time(guard.lost()).await;
    let Err(Error::Lost { key, reason }) = guard.ensure_held() else { panic!("{guard:?}") };
    assert_eq!((key.as_str(), reason), (guard.key(), expected));
}

/// Moves the clock to the next renewal of a lease of `ttl`, which is after a third of it.
fn renewal_is_due(ttl: Duration) {
    skip(ttl * 2 / 5);
}

/// Waits until the watchdog alone has renewed the lease of `ttl` so often.
pub(super) async fn is_renewed(guard: &LockGuard, ttl: Duration, times: usize) {
    for _ in 0..times {
        renewal_is_due(ttl);
        is_renewed_now(guard, ttl).await;
    }
}

/// Moves the clock to when a renewal without an answer is sent again: after a tenth of the time that is left.
fn retry_is_due() {
    skip(TTL / 12);
}

/// Waits for a renewal that is due.
async fn is_renewed_now(guard: &LockGuard, ttl: Duration) {
    eventually("it is renewed", async || guard.remaining() > ttl * 4 / 5).await;
    guard.ensure_held().unwrap();
}

#[tokio::test]
async fn a_flush_is_detected_by_the_next_renewal_and_the_next_holder_left_alone() {
    let server = RedisServer::start().await;
    let (cli, manager, other) =
        (server.cli().await, manager(&server).await, manager(&server).await);
    let guard = manager.acquire("a", lease(TTL)).await.unwrap();
    cli.flushall().await;
    let next = other.acquire("a", lease(TTL)).await.unwrap();
    assert!(next.fencing_token() > guard.fencing_token());
    let value = cli.value("lock:a").await;

    renewal_is_due(TTL);
    is_lost(&guard, LostReason::Taken).await;
    let released = guard.release().await;
    assert!(matches!(released, Err(Error::Lost { reason: LostReason::Taken, .. })), "{released:?}");
    assert_eq!(cli.value("lock:a").await, value);
    next.extend(TTL).await.unwrap();
    next.release().await.unwrap();
    wait_until_lockable(&manager).await;
    assert_nothing_left(&server).await;
}

/// The server is killed and comes back empty, all within the lease.
#[tokio::test]
async fn a_restart_without_data_is_detected_by_the_next_renewal_and_tokens_grow() {
    let server = RedisServer::start().await;
    let manager = manager(&server).await;
    let guard = manager.acquire("a", lease(TTL)).await.unwrap();
    server.restart().await;
    renewal_is_due(TTL);
    is_lost(&guard, LostReason::Taken).await;
    let next = manager.acquire("a", lease(TTL)).await.unwrap();
    assert!(next.fencing_token() > guard.fencing_token());
    assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
    next.extend(TTL).await.expect("the late release freed another's lock");
    next.release().await.unwrap();
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_restart_with_data_within_the_lease_costs_nothing() {
    let server = RedisServer::start().await;
    let manager = manager(&server).await;
    let guard = manager.acquire("a", lease(TTL / 2)).await.unwrap();
    let value = server.cli().await.value("lock:a").await;
    for _ in 0..2 {
        server.restart_with_data().await;
        is_renewed(&guard, TTL / 2, 2).await;
    }
    assert_eq!(server.cli().await.value("lock:a").await, value);
    guard.release().await.unwrap();
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_key_that_became_something_else_than_a_string_is_lost_and_left_alone() {
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, manager(&server).await);
    let guard = manager.acquire("a", lease(TTL)).await.unwrap();
    cli.query::<()>(&["DEL", "lock:a"]).await;
    cli.query::<()>(&["LPUSH", "lock:a", "theirs"]).await;
    renewal_is_due(TTL);
    is_lost(&guard, LostReason::Taken).await;
    assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
    let list: Vec<String> = cli.query(&["LRANGE", "lock:a", "0", "-1"]).await;
    assert_eq!(list, ["theirs"]);
    assert!(manager.try_acquire("a", lease(TTL)).await.unwrap().is_none());
    cli.query::<()>(&["DEL", "lock:a"]).await;
    wait_until_lockable(&manager).await;
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_key_made_persistent_gets_its_ttl_back_at_the_next_renewal_or_is_released() {
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, manager(&server).await);
    let guard = manager.acquire("a", lease(TTL)).await.unwrap();
    cli.query::<()>(&["PERSIST", "lock:a"]).await;
    assert_eq!(cli.pttl("lock:a").await, -1);
    renewal_is_due(TTL);
    eventually("it has an end again", async || cli.pttl("lock:a").await > 0).await;
    guard.release().await.unwrap();

    // Without renewals it stays endless: the deadline ends it for its holder, and the key exists
    // for the others. A waiter's error shows why it takes so long. The release frees it all the
    // same.
    let fixed = manager.acquire("a", lease(TTL).renew(false)).await.unwrap();
    cli.query::<()>(&["PERSIST", "lock:a"]).await;
    skip(TTL);
    is_lost(&fixed, LostReason::Expired).await;
    let refused = manager.acquire("a", lease(TTL).retry(0)).await.unwrap_err();
    let Error::Contended { holder: Some(holder), .. } = refused else { panic!("{refused:?}") };
    assert_eq!((holder.process, holder.remaining), (Some(std::process::id()), None));
    assert!(matches!(fixed.release().await, Err(Error::Lost { .. })));
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_key_whose_ttl_was_shortened_is_renewed_or_lost() {
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, manager(&server).await);
    let guard = manager.acquire("a", lease(TTL)).await.unwrap();
    cli.query::<()>(&["PEXPIRE", "lock:a", "300000"]).await;
    renewal_is_due(TTL);
    eventually("it is renewed", async || cli.pttl("lock:a").await > 300_000).await;
    guard.ensure_held().unwrap();

    // Before any renewal: the next caller gets in, and the previous holder does not disturb it.
    cli.query::<()>(&["PEXPIRE", "lock:a", "1"]).await;
    let other = LockManager::connect(server.url()).await.unwrap();
    let next = other.acquire("a", lease(TTL)).await.unwrap();
    assert!(next.fencing_token() > guard.fencing_token());
    renewal_is_due(TTL);
    is_lost(&guard, LostReason::Taken).await;
    drop(guard);
    wait_until_lockable(&manager).await;
    next.release().await.unwrap();
    assert_nothing_left(&server).await;
}

/// A jump ahead of a server's clock ends every lease at once. A test cannot set that clock, so it
/// sets the ends back instead, which is the same to the server.
#[tokio::test]
async fn a_server_clock_that_jumps_ahead_loses_all_leases_and_no_more() {
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, manager(&server).await);
    let mut guards = Vec::new();
    for key in ["a", "b", "c"] {
        guards.push(manager.acquire(key, lease(TTL)).await.unwrap());
    }
    for name in cli.keys("lock:*").await {
        cli.query::<()>(&["PEXPIREAT", &name, "1"]).await;
    }
    renewal_is_due(TTL);
    for guard in &guards {
        is_lost(guard, LostReason::Taken).await;
        let next = manager.acquire(guard.key(), lease(TTL)).await.unwrap();
        assert!(next.fencing_token() > guard.fencing_token());
        next.release().await.unwrap();
    }
    drop(guards);
    assert_nothing_left(&server).await;
}

/// A jump back by an hour of a server's clock makes every lease that much longer: holders go on,
/// and a release frees at once. (What a crashed holder leaves stays for that hour.)
#[tokio::test]
async fn a_server_clock_that_jumps_back_delays_no_release() {
    let server = RedisServer::start().await;
    let (cli, manager) = (server.cli().await, manager(&server).await);
    let guard = manager.acquire("a", lease(TTL / 2)).await.unwrap();
    cli.query::<()>(&["PEXPIRE", "lock:a", "3600000"]).await;
    is_renewed(&guard, TTL / 2, 2).await;
    assert!(cli.pttl("lock:a").await > 3_000_000, "a renewal does not shorten");
    guard.release().await.unwrap();
    let next = manager.acquire("a", lease(TTL).retry(0)).await.unwrap();
    assert!(cli.pttl("lock:a").await <= 600_000);
    next.release().await.unwrap();
    assert_nothing_left(&server).await;
}
