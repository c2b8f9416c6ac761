//! TLS to several servers at once: each of them must show a trusted certificate.

use std::collections::HashSet;

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{
    Cluster, Independents, RedisServer, Sentinels, assert_nobody_listens, assert_nothing_left,
    with_query,
};

use super::{connect, describe};

/// The files of one server fit all servers, which share one authority.
fn with_files(url: &str, server: &RedisServer, authority: bool) -> String {
    let (cert, key) = (server.client_cert_path(), server.client_key_path());
    let files = format!("client_cert={}&client_key={}", cert.display(), key.display());
    let url = with_query(url, &files);
    match authority {
        true => with_query(&url, &format!("ca={}", server.ca_path().display())),
        false => url,
    }
}

async fn cycles(url: &str) {
    let (manager, other) = (connect(url).await, connect(url).await);
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    let waits = tokio::spawn(async move { other.acquire("a", LockOptions::new()).await });
    tokio::task::yield_now().await;
    held.release().await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_quorum_is_reached_over_tls() {
    let servers = Independents::builder()
        .count(3)
        .servers(RedisServer::builder().tls_clients().password("s3cret"))
        .tls();
    let servers = servers.start().await;
    let url = with_query(&servers.tls_url(), "durable=true");
    cycles(&with_files(&url, servers.node(0), true)).await;
    let wrong = LockManager::connect(with_files(&url, servers.node(0), false)).await.unwrap_err();
    assert!(matches!(wrong, Error::Store { .. }), "{wrong:?}");
    assert!(
        wrong.to_string().contains("certificate") || format!("{wrong:?}").contains("ertificate")
    );
    assert_nothing_left(&servers).await;
}

#[tokio::test]
async fn sentinels_and_their_master_are_reached_over_tls() {
    let servers =
        Sentinels::builder().replicas(1).servers(RedisServer::builder().tls_clients()).tls();
    let servers = servers.start().await;
    let master = servers.master().await;
    let url = servers.tls_url();
    cycles(&with_files(&url, master, true)).await;
    let url = with_files(&url, master, false);
    let wrong = LockManager::connect(&url).await.unwrap_err();
    assert!(matches!(wrong, Error::Store { .. }), "{wrong:?}");
    assert_nothing_left(&servers).await;
}

#[tokio::test]
async fn all_nodes_of_a_cluster_are_reached_over_tls() {
    let servers = RedisServer::builder().tls_clients().password("s3cret");
    let cluster = Cluster::builder().servers(servers).tls().start().await;
    let (url, node) = (cluster.tls_url(), &cluster.nodes()[0]);
    cycles(&with_files(&url, node, true)).await;
    let manager = connect(&with_files(&url, node, true)).await;
    // Keys in slots of all nodes; below, a slot that has moved, to which only the old node
    // redirects.
    let keys = ["b", "c", "d", "e"];
    let all = manager.acquire_all(keys, LockOptions::new()).await.unwrap();
    let nodes: HashSet<_> =
        keys.iter().map(|key| cluster.slot_of(&format!("lock:{key}")) / 5_462).collect();
    assert_eq!(nodes.len(), 3, "{nodes:?}");
    all.release().await.unwrap();
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    let slot = cluster.slot_of("lock:a");
    let there = cluster.master_of((slot + 8_192) % 16_384).await;
    cluster.migrate_slot(slot, there).await;
    held.release().await.unwrap();
    let wrong = LockManager::connect(with_files(&url, node, false)).await.unwrap_err();
    assert!(matches!(wrong, Error::Store { .. }), "{wrong:?}");
    assert!(describe(&wrong).contains("ertificate"), "{wrong:?}");
    drop(manager);
    assert_nothing_left(&cluster).await;
    assert_nobody_listens(&cluster).await;
}
