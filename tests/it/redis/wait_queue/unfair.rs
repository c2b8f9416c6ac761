//! A process that always has waiters of its own, against a process with a single task.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use lockattr_tests::{RedisServer, in_time};

use super::*;

const ROUNDS: u32 = 100;

/// The most often that the many got in while the single task was queued, over all rounds.
///
/// Each body of the many asks the server whether the single task is queued, so the server's order
/// counts, not that of two clients. Then it sends a request over its own connection, which also
/// carries notifications: all earlier ones have then arrived.
async fn overtaken(query: &str) -> u32 {
    let server = RedisServer::start().await;
    let (many, single) = (manager(&server, query).await, manager(&server, LONG).await);
    let (ended, times) = (Arc::<AtomicBool>::default(), Arc::<AtomicU32>::default());
    let mut tasks = JoinSet::new();
    for _ in 0..64 {
        let (many, cli) = (many.clone(), server.cli().await);
        let (ended, times) = (ended.clone(), times.clone());
        tasks.spawn(async move {
            while !ended.load(Ordering::SeqCst) {
                let guard = acquire(&many).await;
                if queued(&cli, "a").await > 0 {
                    times.fetch_add(1, Ordering::SeqCst);
                }
                many.holder("another").await.unwrap();
                drop(guard);
            }
        });
    }
    let mut most = 0;
    for _ in 0..ROUNDS {
        times.store(0, Ordering::SeqCst);
        let guard = in_time(acquire(&single)).await;
        most = most.max(times.load(Ordering::SeqCst));
        guard.release().await.unwrap();
    }
    ended.store(true, Ordering::SeqCst);
    tasks.join_all().await;
    drop((many, single));
    assert_no_trace(&server).await;
    most
}

#[tokio::test]
async fn of_64_tasks_in_a_tight_loop_at_most_32_get_in_before_a_waiter_elsewhere() {
    let most = overtaken("ttl=60s&wait=60s&connections=1&max_handoff_time=60s").await;
    // Plus the one that had the lock already.
    assert!(most <= 32 + 1, "overtaken {most} times");
    assert!(most >= 32, "overtaken only {most} times: too few to judge");
}

#[tokio::test]
async fn the_number_of_hand_offs_before_a_waiter_elsewhere_can_be_set() {
    let most =
        overtaken("ttl=60s&wait=60s&connections=1&max_handoff_time=60s&max_handoffs=4").await;
    assert!(most <= 4 + 1, "overtaken {most} times");
    assert!(most >= 4, "overtaken only {most} times: too few to judge");
}

/// By time as well: with zero, nothing is handed off once another process is known to wait.
#[tokio::test]
async fn the_time_of_hand_offs_before_a_waiter_elsewhere_can_be_set() {
    let most =
        overtaken("ttl=60s&wait=60s&connections=1&max_handoff_time=0s&max_handoffs=1000").await;
    assert!(most <= 1, "overtaken {most} times");
}

/// Bodies without any await: notifications about the single task are read only between bodies, and
/// it still gets in.
#[tokio::test]
#[expect(clippy::print_stderr, reason = "figures for the log")]
async fn a_waiter_elsewhere_gets_past_64_tasks_whose_bodies_await_nothing() {
    let server = RedisServer::start().await;
    let (many, single) = (manager(&server, LONG).await, manager(&server, LONG).await);
    let (ended, times) = (Arc::<AtomicBool>::default(), Arc::<AtomicU32>::default());
    let mut tasks = JoinSet::new();
    for _ in 0..64 {
        let (many, ended, times) = (many.clone(), ended.clone(), times.clone());
        tasks.spawn(async move {
            while !ended.load(Ordering::SeqCst) {
                drop(acquire(&many).await);
                times.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    let mut overtaken = Vec::new();
    for _ in 0..ROUNDS {
        let before = times.load(Ordering::SeqCst);
        let guard = in_time(acquire(&single)).await;
        overtaken.push(times.load(Ordering::SeqCst) - before);
        guard.release().await.unwrap();
    }
    ended.store(true, Ordering::SeqCst);
    tasks.join_all().await;
    overtaken.sort_unstable();
    eprintln!("overtaken {} times in the middle, {} at most", overtaken[50], overtaken[99]);
    // As often as one lease is handed off locally when no other process is known to wait.
    assert!(overtaken[99] < 1_024, "{overtaken:?}");
    drop((many, single));
    assert_no_trace(&server).await;
}
