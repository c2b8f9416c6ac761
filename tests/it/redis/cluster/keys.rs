//! One claim for keys in several slots.

use lockattr::{Error, FencingToken};
use lockattr_tests::StoppedClock;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::*;

/// Three keys in slots of several nodes.
const KEYS: [&str; 3] = ["a", "b", "c"];

async fn both(manager: &LockManager, keys: [&str; 2]) -> LockGuard {
    manager.acquire_all(keys, LockOptions::new()).await.unwrap()
}

/// A manager whose locks are apart from those of other tests in the shared cluster.
async fn manager_of(cluster: &Cluster, test: &str) -> LockManager {
    LockManager::connect(&cluster.url_with(&format!("prefix={test}:"))).await.unwrap()
}

async fn left(cluster: &Cluster, prefix: &str) -> Vec<String> {
    let mut left = Vec::new();
    for node in cluster.nodes() {
        left.extend(node.cli().await.keys(&format!("*{prefix}:*")).await);
    }
    left
}

#[tokio::test]
async fn a_waiter_for_keys_in_two_slots_holds_none_of_them() {
    let cluster = Cluster::shared().await;
    let first = manager_of(cluster, "rollback").await;
    let second = manager_of(cluster, "rollback").await;
    for (held, free) in [("a", "b"), ("b", "a")] {
        let holder = acquire(&first, held).await;
        let waiting = tokio::spawn({
            let second = second.clone();
            async move { both(&second, ["a", "b"]).await }
        });
        let line = format!("lockattr:line-of:{{rollback:{held}}}");
        let stands = async || {
            let cli = cluster.node_of(&line).await.cli().await;
            cli.query::<usize>(&["ZCARD", &line]).await == 1
        };
        eventually("queued", stands).await;
        let name = format!("rollback:{free}");
        let taken = async || cluster.node_of(&name).await.cli().await.value(&name).await.is_none();
        eventually("the free one is released", taken).await;
        acquire(&first, free).await.release().await.unwrap();
        holder.release().await.unwrap();
        let guard = granted(waiting).await;
        assert_eq!(guard.keys().collect::<Vec<_>>(), ["a", "b"]);
        for key in ["a", "b"] {
            assert!(first.try_acquire(key, LockOptions::new()).await.unwrap().is_none());
        }
        guard.release().await.unwrap();
    }
    both(&second, ["b", "a"]).await.release().await.unwrap();
    drop((first, second));
    let gone = async || left(cluster, "rollback").await.is_empty();
    eventually("nothing is left", gone).await;
}

#[tokio::test]
async fn keys_named_in_opposite_orders_never_block_each_other() {
    let cluster = Cluster::shared().await;
    let mut tasks = JoinSet::new();
    for orders in [[["a", "b"], ["b", "c"]], [["b", "a"], ["c", "b"]], [["c", "a"], ["a", "c"]]] {
        let manager = manager_of(cluster, "orders").await;
        tasks.spawn(async move {
            for round in 0..100 {
                both(&manager, orders[round % 2]).await.release().await.unwrap();
            }
        });
    }
    in_time(tasks.join_all()).await;
    let gone = async || left(cluster, "orders").await.is_empty();
    eventually("nothing is left", gone).await;
}

/// A caller waits for two keys, in the queue of the second. When it is granted that one, the first
/// is taken.
#[tokio::test]
async fn a_granted_claim_that_cannot_get_its_other_key_passes_the_grant_on() {
    let cluster = Cluster::start().await;
    let first = manager(&cluster).await;
    let mut pair = ["a", "b"];
    pair.sort_by_key(|key| slot_of(&cluster, key));
    let [low, high] = pair;
    let holder = acquire(&first, high).await;
    let wants_both = manager(&cluster).await;
    let for_both = tokio::spawn({
        let manager = wants_both.clone();
        async move { both(&manager, ["a", "b"]).await }
    });
    eventually("queued", async || queued(&cluster, high).await == 1).await;
    let wants_one = manager(&cluster).await;
    let for_one = waiter(&cluster, &wants_one, high, 2).await;
    let in_the_way = acquire(&first, low).await;
    // A claim that asks again after some seconds would make good what it left undone.
    let clock = StoppedClock::new();
    holder.release().await.unwrap();
    granted(for_one).await.release().await.unwrap();
    drop(clock);
    assert!(!for_both.is_finished());
    in_the_way.release().await.unwrap();
    granted(for_both).await.release().await.unwrap();
    drop((first, wants_both, wants_one));
    assert_no_trace(&cluster).await;
}

/// Each key has seen the number of every claim that held it, alone or with others.
#[tokio::test]
async fn tokens_grow_for_each_key_through_claims_for_one_and_for_several() {
    let cluster = Cluster::start().await;
    let manager = manager(&cluster).await;
    // By its counter, the clock of one node is an hour ahead.
    for key in KEYS {
        acquire(&manager, key).await.release().await.unwrap();
    }
    let ahead = cluster.node_of("lock:b").await;
    for fence in ahead.cli().await.keys("lockattr:fence:*").await {
        ahead.cli().await.query::<i64>(&["INCRBY", &fence, "3600000000"]).await;
    }
    let mut last = std::collections::HashMap::<&str, FencingToken>::new();
    let claims: [&[&str]; 9] = [
        &["a"],
        &["a", "b"],
        &["a"],
        &["b", "c"],
        &["c"],
        &["a", "c"],
        &["b"],
        &["a", "b", "c"],
        &["c"],
    ];
    for keys in claims {
        let claim = keys.iter().copied();
        let guard = manager.acquire_all(claim, LockOptions::new()).await.unwrap();
        for key in keys {
            let before = last.insert(key, guard.fencing_token());
            assert!(before < Some(guard.fencing_token()), "{key} of {keys:?}: {before:?}");
        }
        guard.release().await.unwrap();
    }
    drop(manager);
    assert_no_trace(&cluster).await;
}

#[tokio::test]
async fn a_call_for_several_keys_that_is_dropped_leaves_nothing() {
    let cluster = Cluster::shared().await;
    let manager = manager_of(cluster, "dropped").await;
    for micros in (0..3_000).step_by(60) {
        let asks = manager.acquire_all(KEYS, LockOptions::new());
        let _given_up = timeout(Duration::from_micros(micros), asks).await;
    }
    let gone = async || left(cluster, "dropped").await.is_empty();
    eventually("nothing is left", gone).await;
}

/// Each part at its own node.
#[tokio::test]
async fn several_keys_are_renewed_at_all_of_their_nodes() {
    let cluster = Cluster::shared().await;
    let manager = manager_of(cluster, "parts").await;
    let guard = manager.acquire_all(KEYS, LockOptions::new()).await.unwrap();
    guard.extend(LONGER).await.unwrap();
    for key in KEYS {
        let name = format!("parts:{key}");
        let left = cluster.node_of(&name).await.cli().await.pttl(&name).await;
        assert!(left > 800_000, "{key} was not renewed: {left}");
    }
    assert!(guard.ensure_held().is_ok());
    // One key is taken away: all are lost.
    let (name, node) = ("parts:b", cluster.node_of("parts:b").await);
    assert_eq!(node.cli().await.query::<i64>(&["DEL", name]).await, 1);
    assert!(matches!(guard.extend(LONGER).await, Err(Error::Lost { .. })));
    in_time(guard.lost()).await;
    drop((guard, manager));
    let gone = async || left(cluster, "parts").await.is_empty();
    eventually("nothing is left", gone).await;
}
