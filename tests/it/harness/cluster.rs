//! Tests of the harness' cluster: its slots are served, moved, and failed over.

use lockattr_tests::{
    Cluster, RedisServer, assert_nobody_listens, assert_nothing_left, listened_to,
};
use redis::RedisResult;

const KEY: &str = "lock:{product:42}";

#[tokio::test]
async fn every_key_has_its_node_and_that_node_a_replica() {
    let cluster = Cluster::start().await;
    assert_eq!(cluster.nodes().len(), 6);
    for key in ["foo", "{product:42}", KEY, "a{}b", "a}{b}c"] {
        let node = cluster.node_of(key).await;
        let cli = node.cli().await;
        let slot: u16 = cli.query(&["CLUSTER", "KEYSLOT", key]).await;
        assert_eq!(cluster.slot_of(key), slot, "{key}");
        cli.query::<()>(&["SET", key, "theirs", "PX", "100"]).await;
        let replica = cluster.replica_of(slot).await.unwrap();
        let error = replica.cli().await.try_query::<()>(&["GET", key]).await.unwrap_err();
        assert_eq!(error.code(), Some("MOVED"), "{error}");
    }
    assert_nothing_left(&cluster).await;
}

#[tokio::test]
async fn a_dead_master_is_replaced_and_comes_back_as_a_replica() {
    let cluster = Cluster::start().await;
    let old = cluster.node_of(KEY).await;
    let replica = cluster.replica_of(cluster.slot_of(KEY)).await.unwrap();
    old.cli().await.query::<()>(&["SET", KEY, "theirs", "PX", "60000"]).await;
    assert_eq!(old.cli().await.query::<usize>(&["WAIT", "1", "100000"]).await, 1);

    old.kill();
    cluster.failed_over(old).await;
    let new = cluster.node_of(KEY).await;
    assert_eq!(new.addr(), replica.addr());
    assert_eq!(new.cli().await.value(KEY).await.as_deref(), Some("theirs"));

    old.revive().await;
    cluster.settled().await;
    new.cli().await.query::<()>(&["DEL", KEY]).await;
    let back = cluster.switch_over(cluster.slot_of(KEY)).await;
    assert_eq!(back.addr(), old.addr());
    cluster.settled().await;
    assert_nothing_left(&cluster).await;
    assert_nobody_listens(&cluster).await;
}

#[tokio::test]
async fn a_master_is_switched_over_again_and_again_and_loses_no_write() {
    let cluster = Cluster::start().await;
    let slot = cluster.slot_of(KEY);
    let mut master = cluster.node_of(KEY).await;
    // Masters vote about the same one once in two node timeouts, which are two hours.
    for round in 1..=3 {
        master.cli().await.query::<()>(&["SET", KEY, &round.to_string()]).await;
        let next = cluster.switch_over(slot).await;
        assert_ne!(next.addr(), master.addr());
        assert_eq!(next.cli().await.query::<usize>(&["GET", KEY]).await, round);
        cluster.settled().await;
        master = next;
    }
}

#[tokio::test]
async fn a_slot_moves_with_its_keys_in_halves_or_at_once() {
    let password = RedisServer::builder().password("pass word");
    let cluster = Cluster::builder().servers(password).start().await;
    assert!(cluster.url().starts_with("redis+cluster://:pass%20word@127.0.0.1:"));
    let slot = cluster.slot_of(KEY);
    let from = cluster.node_of(KEY).await;
    let to = cluster.master_of((slot + 8192) % 16384).await;
    from.cli().await.query::<()>(&["SET", KEY, "theirs", "PX", "60000"]).await;
    let get = async |node: &RedisServer| -> RedisResult<Option<String>> {
        node.cli().await.try_query(&["GET", KEY]).await
    };

    assert_eq!(cluster.begin_migration(slot, to).await.addr(), from.addr());
    assert_eq!(get(from).await.unwrap().as_deref(), Some("theirs"));
    assert_eq!(cluster.move_keys(slot, from, to).await, 1);
    assert_eq!(get(from).await.unwrap_err().code(), Some("ASK"));
    assert_eq!(get(to).await.unwrap_err().code(), Some("MOVED"));
    cluster.end_migration(slot, from, to).await;
    assert_eq!(get(from).await.unwrap_err().code(), Some("MOVED"));
    assert_eq!(get(to).await.unwrap().as_deref(), Some("theirs"));
    assert!(to.cli().await.pttl(KEY).await > 50_000);

    cluster.migrate_slot(slot, from).await;
    assert_eq!(cluster.node_of(KEY).await.addr(), from.addr());
    assert_eq!(get(from).await.unwrap().as_deref(), Some("theirs"));
}

#[tokio::test]
async fn a_sharded_subscription_is_noticed() {
    // Not the shared cluster, here and above: other tests use that.
    let cluster = Cluster::start().await;
    let client =
        redis::Client::open(cluster.node_of("{product:42}").await.url_with("protocol=resp3"));
    let mut subscriber = super::connect(&client.unwrap()).await.unwrap();
    redis::cmd("SSUBSCRIBE").arg("{product:42}").exec_async(&mut subscriber).await.unwrap();
    let listened_to = listened_to(&cluster).await;
    assert!(matches!(&*listened_to, [one] if one.ends_with(": {product:42}")), "{listened_to:?}");
}
