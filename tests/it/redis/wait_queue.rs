//! The wait queue in Redis: its order, its cost, and that it moves on whatever dies, stops or loses
//! data meanwhile.

mod cost;
mod crowd;
mod dead;
mod forgotten;
mod given_up;
mod keys;
mod killed;
mod large;
mod order;
mod readers;
mod shared;
mod stopped;
mod subscriber;
mod unfair;
mod witness;

use std::time::Duration;

use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_tests::{Cli, RedisServer, assert_nothing_left, eventually, in_time};
use tokio::task::{JoinHandle, JoinSet};

use witness::Witness;

/// Longer than any test here waits, so no lock is free because a lease ended. A claim in the queue asks every five
/// seconds all the same.
const LONG: &str = "ttl=1h&wait=10h";

/// For a lease that ends within a test. A third of it is left for a busy machine, twice.
const SHORT: &str = "ttl=15s&wait=10h";

/// A manager with its own connections and subscription, which the store takes for a process.
async fn manager(server: &RedisServer, query: &str) -> LockManager {
    LockManager::connect(&server.url_with(query)).await.unwrap()
}

async fn acquire(manager: &LockManager) -> LockGuard {
    manager.acquire("a", LockOptions::new()).await.unwrap()
}

/// The number of waiters in a lock's wait queue.
async fn queued(cli: &Cli, key: &str) -> usize {
    cli.query(&["ZCARD", &format!("lockattr:line-of:{{lock:{key}}}")]).await
}

/// Waits until `count` waiters are queued for the lock `a`.
async fn wait_until_queued(cli: &Cli, count: usize) {
    let what = format!("{count} queued");
    eventually(&what, async || queued(cli, "a").await == count).await;
}

/// A task that waits for the lock `a`, works under it and releases it.
fn work(manager: &LockManager, witness: &Witness) -> JoinHandle<()> {
    let (manager, witness) = (manager.clone(), witness.clone());
    tokio::spawn(async move {
        let guard = acquire(&manager).await;
        witness.sees(&guard).await;
        guard.release().await.unwrap();
    })
}

/// `tasks` that work, all of one process, of which one waits in the store's wait queue.
fn crowd(manager: &LockManager, witness: &Witness, tasks: usize) -> JoinSet<()> {
    let mut crowd = JoinSet::new();
    for _ in 0..tasks {
        let work = work(manager, witness);
        crowd.spawn(async move { work.await.unwrap() });
    }
    crowd
}

async fn all_have_worked(crowds: Vec<JoinSet<()>>) {
    let all = async {
        for crowd in crowds {
            crowd.join_all().await;
        }
    };
    in_time(all).await;
}

/// The channels that have a subscriber.
async fn subscribers(cli: &Cli) -> Vec<String> {
    cli.query(&["PUBSUB", "CHANNELS"]).await
}

/// Asserts that no lock, no wait queue and no subscription is left when all managers are gone.
async fn assert_no_trace(server: &RedisServer) {
    assert_nothing_left(server).await;
    let cli = server.cli().await;
    eventually("no channel has subscribers", async || subscribers(&cli).await.is_empty()).await;
}
