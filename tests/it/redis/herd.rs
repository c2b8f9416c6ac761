//! A thousand callers that want the same lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockattr::{Lease, LockManager, LockOptions};
use lockattr_tests::{RedisServer, assert_nothing_left, eventually};
use tokio::task::{JoinSet, yield_now};

/// Longer than any test waits, so that no lease is renewed either.
const LONG: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn a_thousand_waiters_get_in_one_at_a_time_when_their_holder_lets_go() {
    let server = RedisServer::start().await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    let cli = server.cli().await;
    let held = manager.acquire("a", LockOptions::new().ttl(LONG)).await.unwrap();
    let (inside, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let waiting = Arc::new(AtomicUsize::new(0));
    let mut waiters = JoinSet::new();
    for _ in 0..1_000 {
        let (manager, inside, done) = (manager.clone(), inside.clone(), done.clone());
        let waiting = waiting.clone();
        waiters.spawn(async move {
            waiting.fetch_add(1, Ordering::SeqCst);
            let body = async |_: &Lease| {
                let others = inside.fetch_add(1, Ordering::SeqCst);
                yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
                others
            };
            manager.with_lock("a", LockOptions::new().ttl(LONG).wait(LONG), body).await
        });
    }
    eventually("all wait", async || waiting.load(Ordering::SeqCst) == 1_000).await;
    assert_eq!(done.load(Ordering::SeqCst), 0);
    let before = cli.commandstats().await["evalsha"];
    held.release().await.unwrap();
    for others in waiters.join_all().await {
        assert_eq!(others.expect("got in"), 0, "not alone");
    }
    assert_eq!(done.load(Ordering::SeqCst), 1_000);
    // Handed off locally: the store is asked again only when the reserved numbers run out.
    assert!(cli.commandstats().await["evalsha"] <= before + 4);
    assert_nothing_left(&server).await;
}
