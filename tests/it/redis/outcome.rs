//! The loss of a body's lease, and what Redis holds afterwards.

use std::time::Duration;

use lockattr::{Error, LockManager, LostReason, distributed_lock};
use lockattr_tests::{Cli, RedisServer, assert_nothing_left, capture_events, skip};
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);

/// Deletes the held lock, as an operator might.
async fn taken_away(cli: &Cli) -> Result<u32, Error> {
    cli.query::<String>(&["SET", "lock:job", "another", "PX", "3600000"]).await;
    // A renewal is due.
    skip(1_800 * SECOND);
    Ok(17)
}

#[distributed_lock(key = "job", manager = manager, ttl = "1h")]
async fn cancelled(manager: &LockManager, cli: &Cli) -> Result<u32, Error> {
    taken_away(cli).await?;
    sleep(3600 * SECOND).await;
    unreachable!("a body that was to be dropped");
}

#[distributed_lock(key = "job", manager = manager, ttl = "1h", on_lost = error, lease = lease)]
async fn refused(manager: &LockManager, cli: &Cli) -> Result<u32, Error> {
    let sold = taken_away(cli).await;
    lease.lost().await;
    sold
}

#[distributed_lock(key = "job", manager = manager, ttl = "1h", on_lost = ignore, lease = lease)]
async fn believed(manager: &LockManager, cli: &Cli) -> Result<u32, Error> {
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
    let is_lost = |outcome: &Result<u32, Error>| {
        let Err(Error::Lost { key, reason }) = outcome else { return false };
        key == "job" && *reason == LostReason::Taken
    };
    let outcome = cancelled(&manager, &cli).await;
    assert!(is_lost(&outcome), "{outcome:?}");
    others().await;

    let outcome = refused(&manager, &cli).await;
    assert!(is_lost(&outcome), "{outcome:?}");
    others().await;

    let events = capture_events();
    let outcome = believed(&manager, &cli).await;
    assert!(matches!(outcome, Ok(17)), "{outcome:?}");
    assert_eq!(events.count("lock lost: the store no longer has this process as its holder"), 1);
    others().await;
    assert_nothing_left(&server).await;
}
