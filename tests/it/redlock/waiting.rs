//! Who waits for a quorum is woken by a release, and asks for nothing in the meantime.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockattr::LockOptions;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::Scene;
use crate::support::Fate;

const LONG: LockOptions = LockOptions::new().wait(Duration::from_secs(600));

fn asked(scene: &Scene) -> usize {
    scene.nodes.iter().map(|node| node.calls().acquires).sum()
}

async fn assert_nothing_left(scene: &Scene) {
    sleep(Duration::from_millis(1)).await;
    for node in &scene.nodes {
        assert!(node.holder("stock").await.is_none(), "it stayed behind");
        // Nor is anybody in line: who asks only once gets it.
        let guard = node.manager().try_acquire("stock", LockOptions::new()).await.unwrap();
        let guard = guard.expect("somebody stands in line still");
        guard.release().await.unwrap();
    }
}

/// Red without: the place in line of each node (`Waiting::Told`).
#[tokio::test(start_paused = true)]
async fn a_release_wakes_the_next_one_at_once() {
    let scene = Scene::of(5);
    let (here, there) = (scene.manager(), scene.manager());
    let held = here.acquire("stock", LONG).await.unwrap();
    let before = asked(&scene);
    let waiter = tokio::spawn(async move {
        let guard = there.acquire("stock", LONG).await.unwrap();
        (Instant::now(), guard)
    });
    sleep(Duration::from_secs(60)).await;
    // Once on each node, and again at the end of each TTL that it was told, which was renewed: every
    // seven seconds or so.
    let while_waiting = asked(&scene) - before;
    assert!(while_waiting <= 5 * 20, "it polls: {while_waiting}");
    let released = Instant::now();
    held.release().await.unwrap();
    let (woken, guard) = waiter.await.unwrap();
    assert!(woken - released < Duration::from_millis(1), "{:?}", woken - released);
    guard.release().await.unwrap();
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn many_get_in_one_after_the_other() {
    let scene = Scene::of(5);
    // A round that takes time, so that many are under way at once.
    for (n, node) in scene.nodes.iter().enumerate() {
        node.acquires(&[Fate::Late(Duration::from_micros(300 + 50 * n as u64))]);
    }
    let inside = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let (manager, inside) = (scene.manager(), inside.clone());
        tasks.spawn(async move {
            let mut last = None;
            for _ in 0..10 {
                let inside = inside.clone();
                let body = async move |lease: &lockattr::Lease| {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                    sleep(Duration::from_millis(1)).await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    lease.fencing_token()
                };
                let token = manager.with_lock("stock", LONG, body).await.unwrap();
                assert!(Some(token) > last);
                last = Some(token);
            }
        });
    }
    let began = Instant::now();
    tasks.join_all().await;
    // Eighty bodies of a millisecond and a few trips each: nobody waited for a lease to end.
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_nothing_left(&scene).await;
}

/// Two that split the votes come back at random, and one gets it: nobody waits for a lease to end.
///
/// Red without: the random while in `Votes::contention`.
#[tokio::test(start_paused = true)]
async fn those_that_split_the_votes_get_it_one_after_the_other() {
    let scene = Scene::of(4);
    let managers: Vec<_> = (0..2).map(|_| scene.manager()).collect();
    let began = Instant::now();
    for round in 0..20 {
        // Each reaches two of the four before the other does.
        for (n, node) in scene.nodes.iter().enumerate() {
            let late = Fate::Late(Duration::from_millis(if (n + round) % 2 == 0 { 1 } else { 2 }));
            node.acquires(&[late]);
        }
        let ask = async |n: usize| {
            let guard = managers[n].acquire("stock", LONG).await.unwrap();
            guard.release().await.unwrap();
        };
        tokio::join!(ask(0), ask(1));
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_nothing_left(&scene).await;
}

/// Red without: serving the next in line where an inbox is gone.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_gone_is_passed_over() {
    let scene = Scene::of(3);
    let (here, there, gone) = (scene.manager(), scene.manager(), scene.manager());
    let held = here.acquire("stock", LONG).await.unwrap();
    let leaves = tokio::spawn(async move { gone.acquire("stock", LONG).await });
    sleep(Duration::from_millis(10)).await;
    let waiter = tokio::spawn(async move { there.acquire("stock", LONG).await.unwrap() });
    sleep(Duration::from_millis(10)).await;
    // The process is killed: nothing is given back.
    for node in &scene.nodes {
        node.releases(&[Fate::Refused]);
    }
    leaves.abort();
    leaves.await.unwrap_err();
    sleep(Duration::from_millis(10)).await;
    for node in &scene.nodes {
        node.releases(&[Fate::Answered]);
    }
    let released = Instant::now();
    held.release().await.unwrap();
    let guard = waiter.await.unwrap();
    assert!(released.elapsed() < Duration::from_secs(1), "{:?}", released.elapsed());
    guard.release().await.unwrap();
}
