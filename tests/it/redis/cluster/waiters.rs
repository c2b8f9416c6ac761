//! Waiting processes in a cluster that die, and channels that no process needs any more.

use lockattr_tests::node;

use super::*;

#[tokio::test]
async fn a_killed_process_in_the_queue_is_passed_over() {
    let cluster = Cluster::start().await;
    let (first, last) = (manager(&cluster).await, manager(&cluster).await);
    let holder = acquire(&first, "a").await;
    let mut dead = node!("lock", url = cluster.url());
    dead.say("acquire a").await;
    eventually("queued", async || queued(&cluster, "a").await == 1).await;
    let waiter = waiter(&cluster, &last, "a", 2).await;
    let cli = cluster.node_of("lock:a").await.cli().await;
    let listeners = async || cli.query::<Vec<String>>(&["PUBSUB", "SHARDCHANNELS"]).await.len();
    eventually("all listen", async || listeners().await == 3).await;
    dead.kill();
    eventually("the server knows", async || listeners().await == 2).await;
    holder.release().await.unwrap();
    granted(waiter).await.release().await.unwrap();
    drop((first, last));
    assert_no_trace(&cluster).await;
}

/// A manager that acquires a lock in each of many slots, one after another.
#[tokio::test]
async fn unused_channels_are_unsubscribed_and_the_others_kept() {
    let cluster = Cluster::start().await;
    let (first, second) = (manager(&cluster).await, manager(&cluster).await);
    let holder = acquire(&first, "a").await;
    let waiter = waiter(&cluster, &second, "a", 1).await;
    let most = 1024;
    for number in 0..6_000 {
        acquire(&second, &format!("k{number}")).await.release().await.unwrap();
    }
    for node in cluster.nodes() {
        let channels: Vec<String> = node.cli().await.query(&["PUBSUB", "SHARDCHANNELS"]).await;
        assert!(channels.len() <= most + 2, "{} at {}", channels.len(), node.addr());
    }
    assert!(!waiter.is_finished());
    holder.release().await.unwrap();
    granted(waiter).await.release().await.unwrap();
    drop((first, second));
    assert_no_trace(&cluster).await;
}
