//! How many connections a process opens, as the docs of `RedisStore` count them.

use std::time::Duration;

use lockattr::store::{RedisStore, ServerOptions, redis};
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Cli, Cluster, Fault, HUNG, Proxy, RedisServer, Sentinels, eventually};

/// Every connection that this store can use has carried a lock.
async fn used(manager: &LockManager) {
    for key in 0..50 {
        let shared = LockOptions::new();
        let held = manager.acquire(format!("{key}"), shared).await.unwrap();
        held.extend(Duration::from_secs(20)).await.unwrap();
        held.release().await.unwrap();
    }
}

async fn assert_connections(cli: &Cli, expected: usize) {
    let what = format!("{expected} connections");
    eventually(&what, async || cli.client_count().await == expected).await;
}

async fn connected(url: &str, options: ServerOptions) -> LockManager {
    let client = redis::Client::open(url).unwrap();
    let options = options.connect_timeout(HUNG).response_timeout(HUNG);
    let manager = super::own_client::manager(RedisStore::from_client(client, options));
    used(&manager).await;
    manager
}

#[tokio::test]
async fn one_connection_carries_all_locks_of_a_server() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let one = connected(&server.url(), ServerOptions::new()).await;
    assert_connections(&cli, 1).await;
    let three = connected(&server.url(), ServerOptions::new().connections(3)).await;
    assert_connections(&cli, 1 + 3).await;
    drop((one, three));
    assert_connections(&cli, 0).await;
}

#[test]
fn each_runtime_has_its_own() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let server = first.block_on(RedisServer::start());
    let cli = first.block_on(server.cli());
    let manager = first.block_on(connected(&server.url(), ServerOptions::new()));
    second.block_on(used(&manager));
    first.block_on(assert_connections(&cli, 2));
}

#[tokio::test]
async fn replicas_need_two_for_commands_and_one_for_renewals() {
    let server = RedisServer::start().await;
    let replica = RedisServer::builder().replica_of(&server).start().await;
    replica.linked().await;
    let cli = server.cli().await;
    // The replica is a client too.
    let before = cli.client_count().await;
    let _manager = connected(&server.url(), ServerOptions::new().replicas(1)).await;
    assert_connections(&cli, before + 3).await;
}

#[tokio::test]
async fn without_resp3_messages_have_a_second_connection() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let unknown = "ERR unknown command `HELLO`, with args beginning with: `3`";
    proxy.always("hello", Fault::Answer(unknown.into()));
    let cli = server.cli().await;
    let _manager = connected(&server.url_through(&proxy), ServerOptions::new()).await;
    assert_connections(&cli, 2).await;
}

#[tokio::test]
async fn sentinels_have_one_each_and_their_master_one() {
    let servers = Sentinels::builder().replicas(1).start().await;
    let cli = servers.master().await.cli().await;
    let before = cli.client_count().await;
    let manager = LockManager::connect(&servers.url()).await.unwrap();
    used(&manager).await;
    assert_connections(&cli, before + 1).await;
    for sentinel in servers.sentinels() {
        let cli = sentinel.cli().await;
        eventually("one subscription", async || {
            let list: String = cli.query(&["CLIENT", "LIST", "TYPE", "PUBSUB"]).await;
            list.lines().count() == 1
        })
        .await;
    }
}

#[tokio::test]
async fn each_master_of_a_cluster_has_one_for_commands_and_one_for_messages() {
    let cluster = Cluster::start().await;
    let mut before = Vec::new();
    for node in &cluster.nodes()[..3] {
        before.push(node.cli().await.client_count().await);
    }
    let manager = LockManager::connect(&cluster.url()).await.unwrap();
    used(&manager).await;
    for (node, before) in cluster.nodes().iter().zip(before) {
        assert_connections(&node.cli().await, before + 2).await;
    }
}
