//! Those who wait for a lock in Redis: whose turn comes when, what that costs, and that it comes
//! whatever dies, stands still or forgets meanwhile.

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
use lockattr_tests::{Cli, RedisServer, assert_nothing_left_within, eventually};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use witness::Witness;

/// For what needs no timer of anybody's. Shorter than what a claim in the queue waits before it looks
/// by itself after a holder of a long lease, so who is forgotten until then is found out.
const SOON: Duration = Duration::from_secs(10);

/// For what takes a TTL or two.
const LIMIT: Duration = Duration::from_secs(30);

/// So long that nothing here can wait for its end.
const LONG: &str = "ttl=60s&wait=60s";

/// Held or waited for by somebody who soon does not live any more.
const SHORT: &str = "ttl=2s&wait=60s";

/// A manager with connections and a subscriber of its own: all that the store can tell of a process.
async fn manager(server: &RedisServer, query: &str) -> LockManager {
    LockManager::connect(&server.url_with(query)).await.unwrap()
}

async fn acquire(manager: &LockManager) -> LockGuard {
    manager.acquire("a", LockOptions::new()).await.unwrap()
}

/// How many wait in the queue for a lock.
async fn queued(cli: &Cli, key: &str) -> usize {
    cli.query(&["ZCARD", &format!("lockattr:line-of:{{lock:{key}}}")]).await
}

/// Waits until so many wait in the queue for the lock `a`.
async fn stand_in_line(cli: &Cli, count: usize) {
    let what = format!("{count} stand in line");
    eventually(LIMIT, &what, async || queued(cli, "a").await == count).await;
}

/// A task that waits for the lock `a`, works under it and gives it back.
fn work(manager: &LockManager, witness: &Witness) -> JoinHandle<()> {
    let (manager, witness) = (manager.clone(), witness.clone());
    tokio::spawn(async move {
        let guard = acquire(&manager).await;
        witness.sees(&guard).await;
        guard.release().await.unwrap();
    })
}

/// `tasks` that work, all of the same process: one of them waits in the store's queue.
fn crowd(manager: &LockManager, witness: &Witness, tasks: usize) -> JoinSet<()> {
    let mut crowd = JoinSet::new();
    for _ in 0..tasks {
        let work = work(manager, witness);
        crowd.spawn(async move { work.await.unwrap() });
    }
    crowd
}

/// Waits until all of them have worked.
async fn all_have_worked(limit: Duration, crowds: Vec<JoinSet<()>>) {
    let all = async {
        for crowd in crowds {
            crowd.join_all().await;
        }
    };
    timeout(limit, all).await.expect("somebody was left standing in line");
}

/// The subscribers that somebody listens to.
async fn subscribers(cli: &Cli) -> Vec<String> {
    cli.query(&["PUBSUB", "CHANNELS"]).await
}

/// Nothing stays when all managers are gone: no lock, no line, and no subscriber.
async fn assert_no_trace(server: &RedisServer) {
    assert_nothing_left_within(server, LIMIT).await;
    let cli = server.cli().await;
    eventually(LIMIT, "no inbox is listened to", async || subscribers(&cli).await.is_empty()).await;
}
