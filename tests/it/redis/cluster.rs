//! A real cluster: slots that move, masters that fail, and keys in several slots.

mod keys;
mod load;
mod many;
mod masters;
mod replicas;
mod rights;
mod slots;
mod waiters;

use std::time::Duration;

use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_tests::{
    Cluster, RedisServer, assert_nobody_listens, assert_nothing_left_within, eventually,
};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// For what needs no timer of anybody's but the heartbeat.
const SOON: Duration = Duration::from_secs(10);

/// For what takes a failover or a TTL.
const LIMIT: Duration = Duration::from_secs(30);

/// So long that nothing here can wait for its end.
const LONG: &str = "ttl=60s&wait=60s";

/// A manager with connections and a subscriber of its own: all that the store can tell of a process.
async fn manager(cluster: &Cluster, query: &str) -> LockManager {
    LockManager::connect(&cluster.url_with(query)).await.unwrap()
}

async fn acquire(manager: &LockManager, key: &str) -> LockGuard {
    manager.acquire(key, LockOptions::new()).await.unwrap()
}

/// The name of the lock in the store.
fn lock(key: &str) -> String {
    format!("lock:{key}")
}

fn slot_of(cluster: &Cluster, key: &str) -> u16 {
    cluster.slot_of(&lock(key))
}

/// Which of the three masters and its replica has the lock of this key, as long as no slot moves.
fn shard_of(cluster: &Cluster, key: &str) -> usize {
    (usize::from(slot_of(cluster, key)) * 3 + 2) / 16_384
}

/// From now on the replica has nothing of what its master does, which goes on for a tenth of a second.
async fn cut_off(master: &RedisServer, replica: &RedisServer) {
    let cli = master.cli().await;
    replica.stop_signal();
    // What a socket holds would still arrive.
    cli.query::<u64>(&["CLIENT", "KILL", "TYPE", "replica"]).await;
    sleep(Duration::from_millis(100)).await;
}

/// A master that has not the slot of this key.
async fn another_master<'a>(cluster: &'a Cluster, key: &str) -> &'a RedisServer {
    cluster.master_of((slot_of(cluster, key) + 8192) % 16384).await
}

/// So many keys, the locks of which are all at the master of the first, or none of them.
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

/// What stands under a lock's name at the master of its slot.
async fn value(cluster: &Cluster, key: &str) -> Option<String> {
    cluster.node_of(&lock(key)).await.cli().await.value(&lock(key)).await
}

/// How many wait in the queue for a lock.
async fn queued(cluster: &Cluster, key: &str) -> usize {
    let line = match key.contains('{') {
        true => format!("lockattr:line:{}", lock(key)),
        false => format!("lockattr:line-of:{{{}}}", lock(key)),
    };
    cluster.node_of(&line).await.cli().await.query(&["ZCARD", &line]).await
}

/// A process that waits for a lock, once it waits in the queue as the `place`th.
async fn waiter(
    cluster: &Cluster,
    manager: &LockManager,
    key: &str,
    place: usize,
) -> JoinHandle<LockGuard> {
    let (manager, named) = (manager.clone(), key.to_owned());
    let waiter = tokio::spawn(async move { acquire(&manager, &named).await });
    eventually(LIMIT, "in line", async || queued(cluster, key).await == place).await;
    waiter
}

async fn granted(limit: Duration, waiter: JoinHandle<LockGuard>) -> LockGuard {
    timeout(limit, waiter).await.expect("its turn has come").unwrap()
}

/// Nothing stays on any node when all managers are gone: no lock, no line, no shard channel.
async fn assert_no_trace(cluster: &Cluster) {
    assert_nothing_left_within(cluster, LIMIT).await;
    assert_nobody_listens(cluster).await;
}
