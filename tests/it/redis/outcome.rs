//! Failures of a body or of its lease, and what Redis holds afterwards.

use std::time::Duration;

use lockattr::{Error, LockManager, LostReason, distributed_lock};
use lockattr_tests::{Cli, RedisServer, assert_nothing_left, capture_events, eventually};
use tokio::time::{sleep, timeout};

const LIMIT: Duration = Duration::from_secs(20);
const SECOND: Duration = Duration::from_secs(1);

#[distributed_lock(key = "job", manager = &manager, ttl = "60s")]
async fn panicking(manager: LockManager) -> Result<(), Error> {
    panic!("a bug in the body");
}

#[distributed_lock(key = "job", manager = &manager, ttl = "60s", release = background)]
async fn panicking_in_background(manager: LockManager) -> Result<(), Error> {
    panic!("a bug in the body");
}

#[tokio::test]
async fn a_panicking_body_leaves_nothing() {
    let server = RedisServer::start().await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    let calls = [
        tokio::spawn(panicking(manager.clone())),
        tokio::spawn(panicking_in_background(manager.clone())),
    ];
    for call in calls {
        let thrown = call.await.unwrap_err().into_panic();
        assert_eq!(thrown.downcast_ref(), Some(&"a bug in the body"));
    }
    assert_nothing_left(&server).await;
}

#[derive(Debug)]
enum Failure {
    Own,
    Lock(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

#[distributed_lock(key = "job", manager = manager, ttl = "60s")]
async fn fails_without_a_store(manager: &LockManager, server: &RedisServer) -> Result<(), Failure> {
    server.stop_signal();
    Err(Failure::Own)
}

#[tokio::test]
async fn the_bodys_error_wins_over_the_releases_which_is_one_warning() {
    let server = RedisServer::start().await;
    let url = server.url_with("response_timeout=200ms&connect_timeout=200ms");
    let manager = LockManager::connect(&url).await.unwrap();
    let events = capture_events();
    let outcome = timeout(LIMIT, fails_without_a_store(&manager, &server)).await.expect("a hang");
    assert!(matches!(outcome, Err(Failure::Own)), "{outcome:?}");
    server.continue_signal();
    let cli = server.cli().await;
    eventually(LIMIT, "released after all", async || cli.keys("lock:*").await.is_empty()).await;
    let all = events.all();
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].text.contains("the release got no answer"), "{all:?}");
    assert!(all[0].text.contains("key=\"job\""), "{all:?}");
    assert_nothing_left(&server).await;
}

/// Deletes the held lock, as an operator might.
async fn taken_away(cli: &Cli) -> Result<u32, Failure> {
    cli.query::<String>(&["SET", "lock:job", "another", "PX", "60000"]).await;
    Ok(17)
}

#[distributed_lock(key = "job", manager = manager, ttl = "600ms")]
async fn cancelled(manager: &LockManager, cli: &Cli) -> Result<u32, Failure> {
    taken_away(cli).await?;
    sleep(3600 * SECOND).await;
    unreachable!("a body that was to be dropped");
}

#[distributed_lock(key = "job", manager = manager, ttl = "600ms", on_lost = error, lease = lease)]
async fn refused(manager: &LockManager, cli: &Cli) -> Result<u32, Failure> {
    let sold = taken_away(cli).await;
    lease.lost().await;
    sold
}

#[distributed_lock(key = "job", manager = manager, ttl = "600ms", on_lost = ignore, lease = lease)]
async fn believed(manager: &LockManager, cli: &Cli) -> Result<u32, Failure> {
    let sold = taken_away(cli).await;
    lease.lost().await;
    sold
}

/// The next renewal finds out, long before the body would end; the new holder keeps the lock.
#[tokio::test]
async fn a_lock_stolen_during_a_body_is_treated_as_on_lost_says_and_left_to_the_thief() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    let others = async || {
        assert_eq!(cli.value("lock:job").await.as_deref(), Some("another"));
        cli.query::<i64>(&["DEL", "lock:job"]).await;
    };
    let is_lost = |outcome: &Result<u32, Failure>| {
        let Err(Failure::Lock(Error::Lost { key, reason })) = outcome else { return false };
        key == "job" && *reason == LostReason::Taken
    };
    let outcome = timeout(LIMIT, cancelled(&manager, &cli)).await.expect("a hang");
    assert!(is_lost(&outcome), "{outcome:?}");
    others().await;

    let outcome = timeout(LIMIT, refused(&manager, &cli)).await.expect("a hang");
    assert!(is_lost(&outcome), "{outcome:?}");
    others().await;

    let events = capture_events();
    let outcome = timeout(LIMIT, believed(&manager, &cli)).await.expect("a hang");
    assert!(matches!(outcome, Ok(17)), "{outcome:?}");
    assert_eq!(events.count("the lease was lost while the body ran; ignored"), 1);
    others().await;
    assert_nothing_left(&server).await;
}
