//! The master is killed, and one of its replicas takes its place.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use lockattr::{Error, LockManager, LockOptions, LostReason};
use lockattr_tests::{Sentinels, assert_nobody_listens, assert_nothing_left, eventually, in_time};
use tokio::task::yield_now;

use super::{LONGER, replicated, waits};

#[tokio::test]
async fn a_replicated_lease_continues_at_the_new_master() {
    let sentinels = Sentinels::start().await;
    let manager = LockManager::connect(sentinels.url()).await.unwrap();
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    replicated(&sentinels).await;
    let old = sentinels.master().await;
    let value = old.cli().await.value("lock:a").await;
    old.kill();
    let new = sentinels.failed_over(old).await;
    let other = in_time(manager.acquire("b", LockOptions::new())).await.unwrap();
    sentinels.settled().await;
    let cli = new.cli().await;
    eventually("it is renewed", async || held.extend(LONGER).await.is_ok()).await;
    assert!(cli.pttl("lock:a").await > 800_000, "it is renewed there");
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
    let one = LockManager::connect(sentinels.url()).await.unwrap();
    let two = LockManager::connect(sentinels.url()).await.unwrap();
    let old = sentinels.master().await;
    let replicas = sentinels.replicas().await;
    replicas.iter().for_each(|replica| replica.stop_signal());
    // Bytes in a socket's buffer would still arrive.
    old.cli().await.query::<u64>(&["CLIENT", "KILL", "TYPE", "replica"]).await;
    let first = one.acquire("a", LockOptions::new()).await.unwrap();
    old.kill();
    replicas.iter().for_each(|replica| replica.continue_signal());
    let new = sentinels.failed_over(old).await;
    let second = in_time(two.acquire("a", LockOptions::new())).await.unwrap();
    assert!(second.fencing_token() > first.fencing_token(), "a resource can order them");
    let learns = async || match first.extend(LONGER).await {
        Ok(()) => panic!("two hold it"),
        Err(error) => matches!(error, Error::Lost { .. }),
    };
    eventually("the next renewal tells", learns).await;
    in_time(first.lost()).await;
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
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
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
    let cli = sentinels.failed_over(old).await.cli().await;
    let left = cli.pttl("lock:a").await;
    assert!((1..=600_000).contains(&left), "it ends in {left} ms");
    cli.query::<()>(&["PEXPIRE", "lock:a", "1"]).await;
    let next = in_time(manager.acquire("a", LockOptions::new())).await.unwrap();
    next.release().await.unwrap();
    assert_nothing_left(&sentinels).await;
}

#[tokio::test]
async fn a_waiter_in_the_queue_gets_in_at_the_new_master() {
    let sentinels = Sentinels::start().await;
    let here = LockManager::connect(sentinels.url()).await.unwrap();
    let there = LockManager::connect(sentinels.url()).await.unwrap();
    let held = there.acquire("a", LockOptions::new()).await.unwrap();
    let old = sentinels.master().await;
    let waiter = waits(&here, old, "a").await;
    replicated(&sentinels).await;
    old.kill();
    sentinels.failed_over(old).await;
    sentinels.settled().await;
    let cli = sentinels.master().await.cli().await;
    let listens =
        async || !cli.query::<Vec<String>>(&["PUBSUB", "CHANNELS", "lockattr:*"]).await.is_empty();
    eventually("it listens there", listens).await;
    held.release().await.unwrap();
    let granted = in_time(waiter).await.unwrap().unwrap();
    assert!(cli.value("lock:a").await.is_some(), "it holds at the new master");
    granted.release().await.unwrap();
    assert_nothing_left(&sentinels).await;
}

/// A failover under load: no two bodies run at once, and no increment made under a lock that was held
/// to its end is lost.
#[tokio::test]
async fn no_two_hold_at_once_while_masters_die_under_load() {
    let sentinels = Sentinels::builder().replicas(3).start().await;
    // What only the replicas have of a lock, because its release got lost, ends soon.
    let url = sentinels.url_with("replicas=3&ttl=20s&response_timeout=2s");
    let (inside, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done = [(); 4].map(|()| AtomicUsize::new(0));
    let works = async |done: &AtomicUsize| {
        let (manager, mut last) = (LockManager::builder().url(&url).build().unwrap(), 0);
        while !over.load(Ordering::SeqCst) {
            let wait = LockOptions::new().wait(Duration::from_secs(1));
            let Ok(guard) = manager.acquire("a", wait).await else { continue };
            let others = inside.fetch_add(1, Ordering::SeqCst);
            assert_eq!(others, 0, "two hold at once");
            assert!(u64::from(guard.fencing_token()) > last, "a token that does not grow");
            last = guard.fencing_token().into();
            yield_now().await;
            inside.fetch_sub(1, Ordering::SeqCst);
            // Unknown while there is no master; it is released later.
            done.fetch_add(usize::from(guard.release().await.is_ok()), Ordering::SeqCst);
        }
    };
    let each_gets_in = async || {
        let count = || done.each_ref().map(|done| done.load(Ordering::SeqCst));
        let before = count();
        let all = async || count().iter().zip(before).all(|(now, before)| *now > before);
        eventually("each gets in", all).await;
    };
    let nemesis = async {
        each_gets_in().await;
        let old = sentinels.master().await;
        old.kill();
        let new = sentinels.failed_over(old).await;
        old.revive().await;
        sentinels.settled().await;
        each_gets_in().await;
        over.store(true, Ordering::SeqCst);
        new
    };
    let (_, new) = tokio::join!(join_all(done.iter().map(works)), nemesis);
    assert!(new.cli().await.commandstats().await.contains_key("wait"), "also at the new master");
    assert_nothing_left(&sentinels).await;
}
