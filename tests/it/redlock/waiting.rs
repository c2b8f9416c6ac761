//! A release wakes a quorum's waiters, which send no requests until then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockattr::{Error, LockOptions};
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
        assert!(node.holder("stock").await.is_none(), "it was left behind");
        // Nor does any waiter stay queued: a caller that asks only once acquires the lock.
        let guard = node.manager().try_acquire("stock", LockOptions::new()).await.unwrap();
        let guard = guard.expect("a waiter is still queued");
        guard.release().await.unwrap();
    }
}

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
    // Not a multiple of the interval after which a waiter that is not notified asks again.
    sleep(Duration::from_secs(67)).await;
    // Once on each node, and again three times while its entries there last: about every three
    // seconds.
    let while_waiting = asked(&scene) - before;
    assert!(while_waiting <= 5 * 25, "it polls: {while_waiting}");
    let released = Instant::now();
    held.release().await.unwrap();
    let (woken, guard) = waiter.await.unwrap();
    assert!(woken - released < Duration::from_millis(1), "{:?}", woken - released);
    guard.release().await.unwrap();
    assert_nothing_left(&scene).await;
}

/// Each attempt of a waiter is that of another owner, and the servers know the last one.
///
/// Red without: `last_owner` in `LastKnown::error`.
#[tokio::test(start_paused = true)]
async fn a_call_that_its_own_process_refused_names_the_holder_as_the_servers_do() {
    let scene = Scene::of(3);
    let (here, there) = (scene.manager(), scene.manager());
    let first = there.acquire("stock", LONG).await.unwrap();
    let waiter = tokio::spawn({
        let here = here.clone();
        async move { here.acquire("stock", LONG).await.unwrap() }
    });
    sleep(Duration::from_secs(7)).await;
    first.release().await.unwrap();
    let held = waiter.await.unwrap();
    let refused = here.acquire("stock", LockOptions::new().retry(0)).await.unwrap_err();
    let Error::Contended { holder: Some(holder), .. } = refused else { panic!("{refused:?}") };
    assert!(there.force_release("stock", &*holder).await.unwrap());
    assert!(matches!(held.release().await, Err(Error::Lost { .. })));
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn many_get_in_one_after_the_other() {
    let scene = Scene::of(5);
    // A round takes time, so that many are under way at once.
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
    // Eighty bodies of a millisecond and a few round trips each: no waiter waited for a lease to
    // end.
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_nothing_left(&scene).await;
}

/// Two clients that split the nodes retry after a random delay, and one acquires: neither waits for
/// a lease to end.
#[tokio::test(start_paused = true)]
async fn claims_that_split_the_votes_get_it_one_after_the_other() {
    let scene = Scene::of(4);
    let managers: Vec<_> = (0..2).map(|_| scene.manager()).collect();
    let began = Instant::now();
    for round in 0..20 {
        // Each client reaches two of the four nodes before the other does, and again when it
        // retries.
        let [soon, later] = [1, 2].map(|millis| Fate::Slow(Duration::from_millis(millis)));
        for (n, node) in scene.nodes.iter().enumerate() {
            let fates = if (n + round) % 2 == 0 { [soon, later] } else { [later, soon] };
            node.acquires(&[fates, fates].concat());
            // What one client releases there is not available to the other at once.
            node.releases(&[soon]);
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
