//! Servers with outdated data: a follower that is cut off from its leader.

use lockattr::Error;
use lockattr_tests::{Engine, with_query};
use tokio::time::{Instant, sleep};

use super::*;

/// The followers elect another leader while the old one is stopped. The process connected to it
/// gets no reply, and its lock is `Lost` before another process acquires it.
#[tokio::test]
async fn freezing_the_leader_loses_no_lock() {
    let ensemble = ZooKeeper::start().await;
    let url = ensemble.url_with("session_timeout=6s&ttl=3s&response_timeout=500ms");
    let here = LockManager::connect(&url).await.unwrap();
    let there = LockManager::connect(&url).await.unwrap();
    let held = here.acquire("a", LockOptions::new()).await.unwrap();
    let began = Instant::now();
    let leader = ensemble.leader().await;
    ensemble.freeze_one(leader);
    let max_wait = LockOptions::new().wait(LIMIT);
    let waits = tokio::spawn(async move {
        let guard = there.acquire("a", max_wait).await;
        (Instant::now(), guard)
    });
    let lost = tokio::spawn(async move {
        held.lost().await;
        (Instant::now(), held)
    });
    // The holder renews at the new leader, or learns of its loss.
    sleep(Duration::from_secs(8)).await;
    ensemble.thaw_one(leader);
    let got_in = match lost.is_finished() {
        true => {
            let (lost_at, held) = lost.await.unwrap();
            let (at, next) = waits.await.unwrap();
            let next = next.expect("the next gets in");
            assert!(at >= lost_at, "two at once: {:?} before the loss", lost_at - at);
            assert!(next.fencing_token() > held.fencing_token());
            Some(next)
        }
        false => {
            assert!(!waits.is_finished(), "two at once");
            lost.abort();
            let _aborted = lost.await;
            Some(waits.await.unwrap().1.expect("the next gets in"))
        }
    };
    assert!(began.elapsed() < LIMIT * 2);
    drop((got_in, here));
    nothing_is_left(&ensemble, &ensemble.url()).await;
}

/// A follower alone, with the leader and the other follower stopped, still answers reads for a
/// while. No lock is held on the strength of such a reply.
#[tokio::test]
async fn a_server_without_a_quorum_proves_no_lock() {
    let ensemble = ZooKeeper::start().await;
    let leader = ensemble.leader().await;
    let alone = (leader + 1) % 3;
    let addr = [ensemble.addrs()[alone].clone()];
    let settings = "session_timeout=6s&ttl=3s&response_timeout=500ms";
    let url = with_query(&ensemble.url_at(&addr), settings);
    let manager = LockManager::connect(&url).await.unwrap();
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    (0..3).filter(|nth| *nth != alone).for_each(|nth| ensemble.freeze_one(nth));
    let frozen = Instant::now();
    held.lost().await;
    let lost_after = frozen.elapsed();
    assert!(lost_after <= Duration::from_millis(3_500), "considered held for {lost_after:?}");
    let once = LockOptions::new().wait(Duration::from_millis(200));
    let refused = manager.acquire("b", once).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "an outage is no contention: {refused:?}");
    (0..3).filter(|nth| *nth != alone).for_each(|nth| ensemble.thaw_one(nth));
    let works = async || manager.acquire("c", LockOptions::new()).await.is_ok();
    // The servers must find each other again, and each attempt waits for ten seconds.
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
        let left = held.remaining();
        eventually("renewed at another server", async || held.remaining() > left).await;
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
    let url = ensemble.url_with("session_timeout=24s&ttl=2s");
    let here = LockManager::connect(&url).await.unwrap();
    let there = LockManager::connect(&url).await.unwrap();
    let held = here.acquire("a", LockOptions::new()).await.unwrap();
    (0..3).for_each(|nth| ensemble.kill_one(nth));
    // By then the client pauses longer between attempts than it keeps trying.
    sleep(Duration::from_secs(31)).await;
    assert!(held.ensure_held().is_err());
    ensemble.restart().await;
    let up = Instant::now();
    let next = there.acquire("a", LockOptions::new().wait(LIMIT)).await.unwrap();
    let after = up.elapsed();
    assert!(after < Duration::from_secs(16), "the next got in after {after:?}");
    next.release().await.unwrap();
    drop((held, here, there));
    nothing_is_left(&ensemble, &ensemble.url()).await;
}
