//! Redis behind Sentinel: a master that dies, or that is replaced and still answers.

mod failover;
mod old_master;
mod promise;
mod reach;

use std::time::Duration;

use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_tests::{RedisServer, Sentinels, eventually};
use tokio::task::JoinHandle;

/// Longer than the leases of a manager without settings.
const LONGER: Duration = Duration::from_secs(1200);

/// Waits for `key` in a task, which is in the wait queue when this returns.
async fn waits(
    manager: &LockManager,
    master: &RedisServer,
    key: &'static str,
) -> JoinHandle<Result<LockGuard, lockattr::Error>> {
    let manager = manager.clone();
    let waiter = tokio::spawn(async move { manager.acquire(key, LockOptions::new()).await });
    wait_until_queued(master, key).await;
    waiter
}

/// Returns once there is a waiter for `key` at that master.
async fn wait_until_queued(master: &RedisServer, key: &str) {
    let (cli, line) = (master.cli().await, format!("lockattr:line-of:{{lock:{key}}}"));
    let queued = async || cli.query::<u64>(&["ZCARD", line.as_str()]).await == 1;
    eventually("a waiter is queued", queued).await;
}

/// Returns once every replica has all writes so far.
async fn replicated(sentinels: &Sentinels) {
    let cli = sentinels.master().await.cli().await;
    let (replicas, name) = (sentinels.replicas().await.len(), "lockattr:test:fence");
    cli.query::<()>(&["SET", name, "replicated"]).await;
    let words = ["WAIT", &replicas.to_string(), "1000"];
    // `WAIT` counts the writes of its own connection only.
    let counted = async || cli.query::<usize>(&words).await == replicas;
    eventually("all replicas have it", counted).await;
}
