//! A real cluster: slots that move, masters that fail, and keys in several slots.

mod keys;
mod load;
mod many;
mod masters;
mod misplaced;
mod replicas;
mod rights;
mod slots;
mod waiters;

use std::time::Duration;

use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_tests::{
    Cluster, RedisServer, assert_nobody_listens, assert_nothing_left, eventually, in_time,
};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Longer than the leases of a manager without settings.
const LONGER: Duration = Duration::from_secs(1200);

/// A manager with its own connections and subscription, which the store takes for a process.
async fn manager(cluster: &Cluster) -> LockManager {
    LockManager::connect(&cluster.url()).await.unwrap()
}

/// One with settings under which a silent server soon fails a request. Nothing is sent yet: what the
/// manager acquires is requested until it is granted, and what it drops is released until that succeeds.
fn quick_manager(cluster: &Cluster, query: &str) -> LockManager {
    let query = format!("response_timeout=1s&connect_timeout=1s&heartbeat=500ms&{query}");
    LockManager::builder().url(cluster.url_with(&query)).build().unwrap()
}

async fn acquire(manager: &LockManager, key: &str) -> LockGuard {
    manager.acquire(key, LockOptions::new()).await.unwrap()
}

fn lock(key: &str) -> String {
    format!("lock:{key}")
}

fn slot_of(cluster: &Cluster, key: &str) -> u16 {
    cluster.slot_of(&lock(key))
}

/// The index of the master that has this key's lock, and of its replica, as long as no slot moves.
fn shard_of(cluster: &Cluster, key: &str) -> usize {
    (usize::from(slot_of(cluster, key)) * 3 + 2) / 16_384
}

/// Returns once the replica of this key's master has all writes so far.
async fn replicated(cluster: &Cluster, key: &str) {
    let cli = cluster.node_of(&lock(key)).await.cli().await;
    cli.query::<()>(&["SET", &format!("{{{}}}:fence", lock(key)), "replicated"]).await;
    // `WAIT` counts the writes of its own connection only.
    let counted = async || cli.query::<usize>(&["WAIT", "1", "1000"]).await == 1;
    eventually("the replica has it", counted).await;
}

/// Cuts the replica off from its master, which goes on for a tenth of a second.
async fn cut_off(master: &RedisServer, replica: &RedisServer) {
    let cli = master.cli().await;
    replica.stop_signal();
    // Bytes in a socket's buffer would still arrive.
    cli.query::<u64>(&["CLIENT", "KILL", "TYPE", "replica"]).await;
    sleep(Duration::from_millis(100)).await;
}

/// A master that does not have this key's slot.
async fn another_master<'a>(cluster: &'a Cluster, key: &str) -> &'a RedisServer {
    cluster.master_of((slot_of(cluster, key) + 8192) % 16384).await
}

/// `count` keys whose locks are at the master of `key`, or without `there`, at the other masters.
async fn keys_beside(cluster: &Cluster, key: &str, there: bool, count: usize) -> Vec<String> {
    let master = cluster.node_of(&lock(key)).await.addr();
    let mut keys = Vec::new();
    for number in 0.. {
        let other = format!("{key}-{number}");
        if (cluster.node_of(&lock(&other)).await.addr() == master) == there {
            keys.push(other);
        }
        if keys.len() == count {
            break;
        }
    }
    keys
}

/// The value of a lock at the master of its slot.
async fn value(cluster: &Cluster, key: &str) -> Option<String> {
    cluster.node_of(&lock(key)).await.cli().await.value(&lock(key)).await
}

/// The number of waiters in a lock's wait queue.
async fn queued(cluster: &Cluster, key: &str) -> usize {
    let line = match key.contains('{') {
        true => format!("lockattr:line:{}", lock(key)),
        false => format!("lockattr:line-of:{{{}}}", lock(key)),
    };
    cluster.node_of(&line).await.cli().await.query(&["ZCARD", &line]).await
}

/// A waiter for a lock, once it is the `place`th in the queue.
async fn waiter(
    cluster: &Cluster,
    manager: &LockManager,
    key: &str,
    place: usize,
) -> JoinHandle<LockGuard> {
    let (manager, named) = (manager.clone(), key.to_owned());
    let waiter = tokio::spawn(async move { acquire(&manager, &named).await });
    eventually("queued", async || queued(cluster, key).await == place).await;
    waiter
}

async fn granted(waiter: JoinHandle<LockGuard>) -> LockGuard {
    in_time(waiter).await.unwrap()
}

/// Returns once a process is subscribed to a channel of this node.
async fn is_listened_to(node: &RedisServer) {
    let cli = node.cli().await;
    let listens = async || {
        let channels: Vec<String> = cli.query(&["PUBSUB", "SHARDCHANNELS"]).await;
        !channels.is_empty()
    };
    eventually("it listens there", listens).await;
}

/// Asserts that when all managers are gone, no node has a lock, a wait queue or a shard channel
/// left.
async fn assert_no_trace(cluster: &Cluster) {
    assert_nothing_left(cluster).await;
    assert_nobody_listens(cluster).await;
}
