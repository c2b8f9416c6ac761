//! A key that is done where a majority of the nodes has the mark, and no other.

use std::time::Duration;

use lockattr::store::{RedlockStore, ReleaseOutcome};
use lockattr::{Error, LockManager, LockOptions};
use tokio::time::advance;

use super::Scene;
use crate::marks::{DAY, Process, TTL};
use crate::support::Fate;
use lockattr_tests::{Independents, RedisServer, eventually, for_store, in_time};

/// Red without: `may_show_done` in `acquire.rs`.
#[tokio::test(start_paused = true)]
async fn a_key_is_done_where_a_majority_has_the_mark() {
    let scene = Scene::of(5);
    // Their replies come first.
    for node in &scene.nodes[..2] {
        node.releases(&[Fate::Refused]);
    }
    let process = Process::on(scene.store());
    let claim = process.holder_of("nightly").await;
    assert_eq!(process.mark(&claim, DAY).await.unwrap(), ReleaseOutcome::Released);
    let other = process.claim(&["nightly"]);
    for node in &scene.nodes[3..] {
        node.acquires(&[Fate::Late(TTL / 10)]);
    }
    for _ in 0..3 {
        assert!(process.refused(&other).await.expect("held").done);
        let holder = process.holder("nightly").await.expect("held");
        assert!(holder.done && holder.remaining.is_some_and(|left| left > TTL), "{holder:?}");
        let listed = process.store.held_locks("lock:").await.unwrap();
        assert!(listed.len() == 1 && listed[0].holder.done, "{listed:?}");
        // On the two others the lease ends.
        advance(TTL).await;
    }
    assert_eq!(process.mark(&claim, DAY).await.unwrap(), ReleaseOutcome::Released);
}

/// Red without: the comparison with `needed` in `contention`, or the second look in `holder.rs` and
/// `held_locks.rs`.
#[tokio::test(start_paused = true)]
async fn a_mark_on_a_minority_is_unknown_and_keeps_no_claim_out() {
    let scene = Scene::of(5);
    for node in &scene.nodes[2..] {
        node.releases(&[Fate::Refused]);
    }
    let process = Process::on(scene.store());
    let claim = process.holder_of("nightly").await;
    let unknown = process.mark(&claim, DAY).await.expect_err("two of five");
    assert!(unknown.to_string().contains("2 servers confirmed"), "{unknown}");
    let other = process.claim(&["nightly"]);
    assert!(!process.refused(&other).await.expect("held").done, "two of five say so");
    // Those with the mark are the most that name the same holder.
    for node in &scene.nodes[3..] {
        node.acquires(&[Fate::Refused, Fate::Answered]);
    }
    assert!(!process.refused(&other).await.expect("held").done, "two of three say so");
    assert!(!process.holder("nightly").await.expect("held").done);
    let listed = process.store.held_locks("lock:").await.unwrap();
    assert!(listed.len() == 1 && !listed[0].holder.done, "{listed:?}");
    // Another process cannot reach one of the five: two say so, and two do not.
    let elsewhere = Process::on(scene.store_of(0..4));
    assert!(!elsewhere.holder("nightly").await.expect("held").done);
    let listed = elsewhere.store.held_locks("lock:").await.unwrap();
    assert!(listed.len() == 1 && !listed[0].holder.done, "{listed:?}");
    advance(TTL).await;
    assert_eq!(process.refused(&other).await, None, "a minority keeps the claim out");
}

/// The next holder would have no vote of those nodes, for the whole period.
///
/// Red without: the second round in `force_release`.
#[tokio::test(start_paused = true)]
async fn a_forced_release_leaves_no_mark_on_a_minority() {
    let scene = Scene::of(5);
    for node in &scene.nodes[2..] {
        node.releases(&[Fate::Refused]);
    }
    let process = Process::on(scene.store());
    let claim = process.holder_of("nightly").await;
    process.mark(&claim, DAY).await.expect_err("two of five");
    assert!(process.force_release("nightly").await);
    for node in &scene.nodes {
        assert_eq!(node.holder("nightly").await, None);
    }
}

/// A node that was down while the key was marked, and two of three with the marks of two claims.
///
/// Red without: the mark in `release_attempt`; the first clause of `Holder::is_same`.
#[tokio::test(start_paused = true)]
async fn a_done_key_is_done_with_any_one_node_down() {
    let scene = Scene::of(3);
    let (one, two) = (Process::on(scene.store()), Process::on(scene.store()));
    // The first claim marks one node, and its lease ends on the others. The second one marks these.
    scene.nodes[1].releases(&[Fate::Refused, Fate::Answered]);
    scene.nodes[2].releases(&[Fate::Refused, Fate::Answered]);
    let stray = one.holder_of("nightly").await;
    one.mark(&stray, DAY).await.expect_err("one of three");
    advance(TTL).await;
    let second = two.holder_of("nightly").await;
    assert_eq!(two.mark(&second, DAY).await.unwrap(), ReleaseOutcome::Released);
    // The third claim finds a node without its mark.
    scene.nodes[2].restart();
    let asks = two.claim(&["nightly"]);
    assert!(two.refused(&asks).await.expect("held").done);
    eventually("it is marked again", async || {
        scene.nodes[2].holder("nightly").await.is_some_and(|it| it.done)
    })
    .await;
    for down in 0..3 {
        let others = Process::on(scene.store_of((0..3).filter(|&node| node != down)));
        let waiter = others.claim(&["nightly"]);
        assert!(others.refused(&waiter).await.expect("held").done, "{down} is down");
        assert!(others.holder("nightly").await.expect("held").done, "{down} is down");
        let listed = others.store.held_locks("lock:").await.unwrap();
        assert!(listed.len() == 1 && listed[0].holder.done, "{down} is down: {listed:?}");
    }
    assert!(two.force_release("nightly").await, "the marks are those of three claims");
    for node in &scene.nodes {
        assert_eq!(node.holder("nightly").await, None);
    }
}

/// As a failed acquisition is undone where it was granted. Else the node has no vote for the whole period.
///
/// Red without: `clear`, for replies before the decision and after it.
#[tokio::test(start_paused = true)]
async fn a_claim_that_a_majority_grants_clears_the_mark_of_a_minority() {
    for late in [false, true] {
        let scene = Scene::of(3);
        for node in &scene.nodes[1..] {
            node.releases(&[Fate::Refused, Fate::Answered]);
        }
        let process = Process::on(scene.store());
        let stray = process.holder_of("nightly").await;
        process.mark(&stray, DAY).await.expect_err("one of three");
        advance(TTL).await;
        // The claim has its majority before that node replies, or after it.
        let (first, other) = if late { (1, 0) } else { (0, 1) };
        scene.nodes[first].acquires(&[Fate::Answered]);
        scene.nodes[other].acquires(&[Fate::Late(TTL / 20)]);
        let claim = process.holder_of("nightly").await;
        eventually("the mark is cleared", async || {
            scene.nodes[0].holder("nightly").await.is_none_or(|it| !it.done)
        })
        .await;
        assert_eq!(process.release(&claim).await, ReleaseOutcome::Released);
        let others = Process::on(scene.store_of([0, 2]));
        assert_eq!(others.refused(&others.claim(&["nightly"])).await, None, "late: {late}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_mark_is_repeated_until_a_majority_has_it() {
    let scene = Scene::of(5);
    for node in &scene.nodes[1..] {
        node.releases(&[Fate::ReplyLost, Fate::Answered]);
    }
    let process = Process::on(scene.store());
    let claim = process.holder_of("nightly").await;
    process.mark(&claim, DAY).await.expect_err("unknown");
    assert_eq!(process.mark(&claim, DAY).await.unwrap(), ReleaseOutcome::Released);
    assert!(process.holder("nightly").await.expect("held").done);
}

/// Red without: `last_owner` in `mark_done`.
#[tokio::test(start_paused = true)]
async fn a_claim_marks_what_its_last_attempt_has_acquired() {
    let scene = Scene::of(3);
    let process = Process::on(scene.store());
    let (first, second) = (process.holder_of("nightly").await, process.claim(&["nightly"]));
    assert!(process.refused(&second).await.is_some());
    assert_eq!(process.release(&first).await, ReleaseOutcome::Released);
    assert_eq!(process.refused(&second).await, None);
    assert_eq!(process.mark(&first, DAY).await.unwrap(), ReleaseOutcome::NotHeld);
    assert_eq!(process.mark(&second, DAY).await.unwrap(), ReleaseOutcome::Released);
    for node in &scene.nodes {
        assert!(node.holder("nightly").await.expect("held").done);
    }
}

/// Red without: the mark in `release_attempt`: `Contended`, after the whole wait.
#[tokio::test]
async fn a_server_that_was_down_at_the_mark_gets_it_and_another_one_may_be_down_then() {
    let servers = RedisServer::builder().password("not held by another");
    let servers = Independents::builder().count(3).servers(servers).start().await;
    let url = servers.url_with("durable=true");
    let (here, there) = (LockManager::connect(&url).await.unwrap(), LockManager::connect(&url));
    let there = there.await.unwrap();
    let nightly = async |manager: &LockManager, wait| {
        let options = LockOptions::new().wait(wait);
        let body = async |_: &lockattr::Lease| Ok::<_, Error>(());
        manager.with_lock_once_per("nightly", DAY, options, body).await
    };
    servers.kill(2);
    nightly(&here, DAY).await.unwrap().unwrap();
    servers.revive(2).await;
    eventually("it has the mark", async || {
        let again = nightly(&there, Duration::ZERO).await;
        assert!(matches!(again, Err(Error::Done { .. })), "{again:?}");
        let value = servers.node(2).cli().await.value("lock:nightly").await;
        value.is_some_and(|value| value.ends_with(" done=1"))
    })
    .await;
    servers.kill(0);
    let waits = in_time(nightly(&there, DAY)).await;
    assert!(matches!(waits, Err(Error::Done { .. })), "{waits:?}");
}

/// A server that restarts forgets marks as it forgets leases.
///
/// Red without: the comparison with `longest_ttl`, there and before a body.
#[tokio::test]
async fn a_quorum_that_may_forget_keeps_no_key_done_for_longer_than_a_lease() {
    let url = "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3";
    let process = Process::on(RedlockStore::open(&for_store(url)).unwrap());
    assert_eq!(process.store.refuses_done(), None);
    let claim = process.claim(&["nightly"]);
    let refused = process.mark(&claim, DAY).await.expect_err("too long");
    assert!(refused.to_string().contains("at most 1m"), "{refused}");
    assert!(refused.to_string().contains("`durable=true`"), "{refused}");
    let manager = LockManager::builder().url(url).build().unwrap();
    manager.check_once_per(Duration::from_secs(60)).unwrap();
    let checked = manager.check_once_per(DAY).expect_err("too long").to_string();
    assert!(checked.contains("60s") && checked.contains("`durable=true`"), "{checked}");
    let brief =
        process.mark(&claim, Duration::from_secs(60)).await.expect_err("no server is there");
    assert!(!brief.to_string().contains("at most"), "{brief}");
}
