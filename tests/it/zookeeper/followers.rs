//! Servers with outdated data: a follower that is cut off from its leader.

use lockattr::Error;
use lockattr_tests::{Engine, in_time, node, with_query};
use tokio::time::sleep;

use super::*;

/// The followers elect another leader while the old one is stopped. The process connected to it
/// gets no reply, and its lock is `Lost` before another process acquires it.
#[tokio::test]
async fn freezing_the_leader_loses_no_lock() {
    let ensemble = ZooKeeper::hasty().await;
    let url = ensemble.url_with("session_timeout=6s&ttl=3s&response_timeout=500ms");
    let connect = || LockManager::builder().url(&url).build().unwrap();
    let (here, there) = (connect(), connect());
    let held = Arc::new(here.acquire("a", LockOptions::new()).await.unwrap());
    let (lease, first) = (Arc::downgrade(&held), held.fencing_token());
    let leader = ensemble.leader().await;
    ensemble.freeze_one(leader);
    let waits = tokio::spawn(async move {
        let next = there.acquire("a", LockOptions::new()).await.expect("the next gets in");
        let is_held = lease.upgrade().is_some_and(|held| held.ensure_held().is_ok());
        assert!(!is_held, "two at once");
        next
    });
    // The holder renews at the new leader, or learns of its loss.
    let renewed = async || held.extend(Duration::from_secs(3)).await.is_ok();
    eventually("renewed or lost", async || held.ensure_held().is_err() || renewed().await).await;
    ensemble.thaw_one(leader);
    drop(held);
    let next = in_time(waits).await.unwrap();
    assert!(next.fencing_token() > first);
    drop((next, here));
    nothing_is_left(&ensemble, &ensemble.url()).await;
}

/// A follower alone, with the leader and the other follower stopped, still answers reads for a
/// while. No lock is held on the strength of such a reply.
#[tokio::test]
async fn a_server_without_a_quorum_proves_no_lock() {
    let ensemble = ZooKeeper::hasty().await;
    let leader = ensemble.leader().await;
    let alone = (leader + 1) % 3;
    let addr = [ensemble.addrs()[alone].clone()];
    // The session outlives the lease, so only a renewal that gets no reply loses the lock. The client
    // of a session that lasts longer would pause the longer between its tries, the longer the outage.
    let settings = "session_timeout=1m&ttl=10s&response_timeout=500ms";
    let url = with_query(&ensemble.url_at(&addr), settings);
    let manager = LockManager::builder().url(&url).build().unwrap();
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    (0..3).filter(|nth| *nth != alone).for_each(|nth| ensemble.freeze_one(nth));
    let extended = held.extend(Duration::from_secs(10)).await;
    assert!(
        matches!(extended, Err(Error::Store { .. })),
        "no majority can confirm that: {extended:?}"
    );
    in_time(held.lost()).await;
    let once = LockOptions::new().wait(Duration::from_millis(200));
    let refused = manager.acquire("b", once).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "an outage is no contention: {refused:?}");
    // A leader that goes on while its followers join it again may commit nothing more.
    ensemble.kill_one(leader);
    ensemble.thaw_one((leader + 2) % 3);
    ensemble.revive_one(leader).await;
    let works = async || manager.acquire("c", LockOptions::new()).await.is_ok();
    eventually("it works again", works).await;
    drop((held, manager));
    nothing_is_left(&ensemble, &ensemble.url()).await;
}

#[tokio::test]
async fn a_server_that_dies_loses_no_lock_of_its_clients() {
    let ensemble = ZooKeeper::start().await;
    let leader = ensemble.leader().await;
    let follower = (leader + 1) % 3;
    let mut addrs = ensemble.addrs();
    addrs.swap(0, follower);
    let url = ensemble.url_at(&addrs);
    let manager = LockManager::connect(&url).await.unwrap();
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    for killed in [follower, leader] {
        ensemble.kill_one(killed);
        let renewed = async || held.extend(TTL).await.is_ok();
        eventually("renewed at another server", renewed).await;
        held.ensure_held().unwrap();
        ensemble.revive_one(killed).await;
    }
    held.release().await.unwrap();
    drop(manager);
    nothing_is_left(&ensemble, &url).await;
}

/// Sessions outlive their servers, and their timeouts restart when the servers are back. A session
/// that its store gave up meanwhile is closed then, so no process waits for its timeout.
#[tokio::test]
async fn a_session_abandoned_in_an_outage_blocks_no_lock_after_it() {
    let ensemble = ZooKeeper::start().await;
    let url = ensemble.url_with("session_timeout=40s&ttl=2s");
    let here = LockManager::connect(&url).await.unwrap();
    let there = LockManager::connect(&url).await.unwrap();
    let held = here.acquire("a", LockOptions::new()).await.unwrap();
    // Nothing closes the session of a killed process. The servers end it when they end the other.
    let mut node = node!("lock", url = url);
    node.say("acquire killed").await;
    assert!(node.line().await.starts_with("held "));
    node.kill();
    (0..3).for_each(|nth| ensemble.kill_one(nth));
    // By then the client pauses longer between attempts than it keeps trying.
    sleep(Duration::from_secs(31)).await;
    assert!(held.ensure_held().is_err());
    ensemble.restart().await;
    let next = in_time(there.acquire("a", LockOptions::new())).await.unwrap();
    let killed = line(&ensemble, &url, "killed").await;
    assert_eq!(killed.len(), 1, "the servers ended the session");
    end_session_of(&ensemble, &killed[0]).await;
    next.release().await.unwrap();
    drop((held, here, there));
    nothing_is_left(&ensemble, &ensemble.url()).await;
}
