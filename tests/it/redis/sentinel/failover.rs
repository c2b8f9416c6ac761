//! The master is killed, and one of its replicas takes its place.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions, LostReason};
use lockattr_tests::{Sentinels, assert_nobody_listens, assert_nothing_left, eventually, in_time};
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, sleep_until};

use super::{LIMIT, long, replicated, waits};

#[tokio::test]
async fn a_replicated_lease_continues_at_the_new_master() {
    let sentinels = Sentinels::start().await;
    let manager = LockManager::connect(sentinels.url()).await.unwrap();
    let held = manager.acquire("a", LockOptions::new().ttl(LIMIT * 3)).await.unwrap();
    replicated(&sentinels).await;
    let old = sentinels.master().await;
    let value = old.cli().await.value("lock:a").await;
    old.kill();
    let new = sentinels.failed_over(old).await;
    let other = manager.acquire("b", LockOptions::new().wait(LIMIT)).await.unwrap();
    sentinels.settled().await;
    let cli = new.cli().await;
    let renewed = async || cli.pttl("lock:a").await > 29_000;
    eventually("it is renewed there", renewed).await;
    assert_eq!(cli.value("lock:a").await, value, "by the same claim");
    held.ensure_held().unwrap();
    other.release().await.unwrap();
    held.release().await.unwrap();
    assert_nothing_left(&sentinels).await;
    drop(manager);
    assert_nobody_listens(&sentinels).await;
    for sentinel in sentinels.sentinels() {
        let cli = sentinel.cli().await;
        let listens = async || cli.query::<String>(&["CLIENT", "LIST"]).await.contains("sub=1");
        eventually("no process subscribes to it", async || !listens().await).await;
    }
}

/// Asynchronous replication can lose a lock: the holder learns of the loss, and the tokens still
/// grow.
#[tokio::test]
async fn a_lock_that_its_replicas_never_got_is_lost_and_its_holder_learns_in_time() {
    let sentinels = Sentinels::start().await;
    let options = LockOptions::new().ttl(LIMIT);
    let one = LockManager::connect(sentinels.url()).await.unwrap();
    let two = LockManager::connect(sentinels.url()).await.unwrap();
    let old = sentinels.master().await;
    let replicas = sentinels.replicas().await;
    replicas.iter().for_each(|replica| replica.stop_signal());
    // Bytes in a socket's buffer would still arrive.
    old.cli().await.query::<u64>(&["CLIENT", "KILL", "TYPE", "replica"]).await;
    let started = Instant::now();
    let first = one.acquire("a", options.clone()).await.unwrap();
    old.kill();
    replicas.iter().for_each(|replica| replica.continue_signal());
    let new = sentinels.failed_over(old).await;
    let second = two.acquire("a", options.clone().wait(LIMIT)).await.unwrap();
    assert!(second.fencing_token() > first.fencing_token(), "a resource can order them");
    in_time(first.lost()).await;
    assert!(started.elapsed() < LIMIT, "no later than at its deadline: {:?}", started.elapsed());
    let lost = first.ensure_held().unwrap_err();
    let Error::Lost { reason, .. } = lost else { panic!("{lost:?}") };
    assert_eq!(reason, LostReason::Taken);
    assert!(first.release().await.is_err());
    sentinels.settled().await;
    assert!(new.cli().await.value("lock:a").await.is_some(), "the second's, untouched");
    second.release().await.expect("another process held it");
    assert_nothing_left(&sentinels).await;
}

/// Asynchronous replication can also lose a release: the lock then stays taken, without a holder,
/// until its lease ends. No release waits for a replica, not even with `replicas=1`.
#[tokio::test]
async fn a_release_that_its_replicas_never_got_costs_the_rest_of_the_lease() {
    let sentinels = Sentinels::start().await;
    let manager = LockManager::connect(sentinels.url_with("replicas=1")).await.unwrap();
    let started = Instant::now();
    let held = manager.acquire("a", LockOptions::new().ttl(LIMIT)).await.unwrap();
    replicated(&sentinels).await;
    let old = sentinels.master().await;
    let replicas = sentinels.replicas().await;
    replicas.iter().for_each(|replica| replica.stop_signal());
    // Bytes in a socket's buffer would still arrive.
    let cli = old.cli().await;
    cli.query::<u64>(&["CLIENT", "KILL", "TYPE", "replica"]).await;
    held.release().await.expect("answered, by the master alone");
    assert_eq!(cli.value("lock:a").await, None);
    old.kill();
    replicas.iter().for_each(|replica| replica.continue_signal());
    sentinels.failed_over(old).await;
    let next = manager.acquire("a", LockOptions::new().wait(LIMIT * 3)).await.unwrap();
    assert!(
        started.elapsed() >= LIMIT * 9 / 10,
        "free after {:?} at the new one",
        started.elapsed()
    );
    next.release().await.unwrap();
    assert_nothing_left(&sentinels).await;
}

#[tokio::test]
async fn a_waiter_in_the_queue_gets_in_at_the_new_master() {
    let sentinels = Sentinels::start().await;
    let here = LockManager::connect(sentinels.url()).await.unwrap();
    let there = LockManager::connect(sentinels.url()).await.unwrap();
    let held = there.acquire("a", long()).await.unwrap();
    let old = sentinels.master().await;
    let waiter = waits(&here, old, "a").await;
    replicated(&sentinels).await;
    old.kill();
    sentinels.failed_over(old).await;
    sentinels.settled().await;
    // Neither the waiter nor the holder has sent a request since. If the machine is so slow that
    // there is another failover, the waiter subscribes at that master.
    let listens = async || {
        let cli = sentinels.master().await.cli().await;
        !cli.query::<Vec<String>>(&["PUBSUB", "CHANNELS", "lockattr:*"]).await.is_empty()
    };
    eventually("it listens there", listens).await;
    held.release().await.unwrap();
    let granted = in_time(waiter).await.unwrap().unwrap();
    let cli = sentinels.master().await.cli().await;
    assert!(cli.value("lock:a").await.is_some(), "it holds at the new master");
    granted.release().await.unwrap();
    assert_nothing_left(&sentinels).await;
}

/// One failover after another, under load: no two bodies run at once, and no increment made under a
/// lock that was held to its end is lost.
#[tokio::test]
async fn no_two_hold_at_once_while_masters_die_under_load() {
    let sentinels = Sentinels::builder().replicas(3).start().await;
    let url = sentinels.url_with("replicas=3&ttl=20s&wait=60s");
    let inside = Arc::<AtomicUsize>::default();
    let mut tasks = JoinSet::new();
    let until = Instant::now() + Duration::from_secs(8);
    for _ in 0..4 {
        let (manager, inside) = (LockManager::connect(&url).await.unwrap(), inside.clone());
        tasks.spawn(async move {
            let (mut last, mut done) = (0, 0);
            while Instant::now() < until {
                let Ok(guard) = manager.acquire("a", LockOptions::new()).await else { continue };
                let others = inside.fetch_add(1, Ordering::SeqCst);
                assert_eq!(others, 0, "two hold at once");
                assert!(u64::from(guard.fencing_token()) > last, "a token that does not grow");
                last = guard.fencing_token().into();
                yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                // Unknown while there is no master; it is released later.
                done += usize::from(guard.release().await.is_ok());
            }
            done
        });
    }
    sleep_until(until - Duration::from_secs(6)).await;
    let old = sentinels.master().await;
    old.kill();
    let new = sentinels.failed_over(old).await;
    old.revive().await;
    sentinels.settled().await;
    let done = tasks.join_all().await;
    assert!(done.iter().all(|&done| done > 0), "each got in: {done:?}");
    assert!(new.cli().await.commandstats().await.contains_key("wait"), "also at the new master");
    assert_nothing_left(&sentinels).await;
}
