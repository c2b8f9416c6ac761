//! Stores that a program makes from its own Redis client.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{RedisStore, ServerOptions, redis};
use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{
    Cluster, RedisServer, Sentinels, assert_nobody_listens, assert_nothing_left, bare,
};
use redis::IntoConnectionInfo;

use super::RIGHTS;

pub(super) fn manager(store: Result<RedisStore, Error>) -> LockManager {
    let store = Arc::new(store.unwrap());
    assert!(!format!("{store:?}").contains("s3cret"), "{store:?}");
    let minutes = Duration::from_secs(600);
    LockManager::builder().store(store).wait(minutes).ttl(minutes).build().unwrap()
}

/// A lock is acquired, excludes a manager that was opened by URL, and is handed off by a
/// notification.
async fn excludes(manager: &LockManager, url: &str) {
    let other = LockManager::connect(url).await.unwrap();
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    assert!(other.try_acquire("a", LockOptions::new()).await.unwrap().is_none(), "held twice");
    held.release().await.unwrap();
    let held = other.acquire("a", LockOptions::new()).await.unwrap();
    assert!(manager.try_acquire("a", LockOptions::new()).await.unwrap().is_none(), "held twice");
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_client_keeps_its_login_its_database_and_its_socket() {
    let server = RedisServer::builder().user("locker", "s3cret", RIGHTS).start().await;
    let (url, cli) = (server.url_as("locker", "s3cret").replace("?", "3?"), server.cli().await);
    let client = redis::Client::open(bare(&url)).unwrap();
    let manager = manager(RedisStore::from_client(client, ServerOptions::new()));
    excludes(&manager, &url).await;
    let held = manager.acquire("b", LockOptions::new()).await.unwrap();
    let list: String = cli.query(&["CLIENT", "LIST"]).await;
    let ours: Vec<_> = list.lines().filter(|line| line.contains("user=locker")).collect();
    assert!(ours.iter().all(|line| line.contains("db=3") && line.contains("resp=3")), "{list}");
    held.release().await.unwrap();
    assert_eq!(cli.query::<i64>(&["EXISTS", "lockattr:fence"]).await, 0, "in database 0");

    let path = server.unix_path();
    let client = redis::Client::open(format!("unix://{}", path.display())).unwrap();
    let unix = self::manager(RedisStore::from_client(client, ServerOptions::new()));
    excludes(&unix, &server.unix_url()).await;
}

/// With certificates that only the client knows.
#[tokio::test]
async fn a_client_keeps_its_tls() {
    // As the docs say of a program whose client has TLS. If another test was first, that is fine.
    let _first = rustls::crypto::ring::default_provider().install_default();
    let server = RedisServer::builder().tls_clients().password("s3cret").start().await;
    let read = |path| fs::read(path).unwrap();
    let files = |client: Option<redis::ClientTlsConfig>| redis::TlsCertificates {
        client_tls: client,
        root_cert: Some(read(server.ca_path())),
    };
    let client_tls = redis::ClientTlsConfig {
        client_cert: read(server.client_cert_path()),
        client_key: read(server.client_key_path()),
    };
    let open = |files| redis::Client::build_with_tls(server.tls_url(), files).unwrap();
    let client = open(files(Some(client_tls)));
    let right = manager(RedisStore::from_client(client, ServerOptions::new()));
    excludes(&right, &server.url()).await;
    let wrong = manager(RedisStore::from_client(open(files(None)), ServerOptions::new()));
    let refused = wrong.acquire("a", LockOptions::new().retry(0)).await.unwrap_err();
    assert!(matches!(refused, Error::Store { .. }), "{refused:?}");
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn sentinels_of_the_program_name_the_master() {
    let user = RedisServer::builder().user("locker", "s3cret", "~* &* +@all");
    let servers = Sentinels::builder().replicas(1).servers(user).start().await;
    let sentinels: Vec<_> =
        servers.sentinels().iter().map(|sentinel| redis_url(&sentinel.addr())).collect();
    let from = |server: &str| {
        RedisStore::from_sentinels(sentinels.clone(), "lockattr", server, ServerOptions::new())
    };
    let locker = manager(from("redis://locker:s3cret@not-used"));
    excludes(&locker, &servers.url()).await;
    let list: String = servers.master().await.cli().await.query(&["CLIENT", "LIST"]).await;
    assert!(list.contains("user=locker"), "{list}");

    let wrong = manager(from("redis://locker:wrong@not-used"));
    let refused = wrong.acquire("a", LockOptions::new().retry(0)).await.unwrap_err();
    assert!(matches!(refused, Error::Store { .. }), "{refused:?}");
    assert_nothing_left(&servers).await;
}

#[tokio::test]
async fn a_cluster_is_found_through_the_nodes_of_the_program() {
    let user = RedisServer::builder().user("locker", "s3cret", "~* &* +@all");
    let cluster = Cluster::builder().servers(user).start().await;
    let seeds: Vec<_> =
        cluster.nodes()[..2].iter().map(|node| node.url_as("locker", "s3cret")).collect();
    let manager = manager(RedisStore::from_cluster(seeds, ServerOptions::new()));
    excludes(&manager, &cluster.url()).await;
    let keys = ["b", "c", "d", "e"];
    manager.acquire_all(keys, LockOptions::new()).await.unwrap().release().await.unwrap();
    for node in cluster.nodes().iter().take(3) {
        let list: String = node.cli().await.query(&["CLIENT", "LIST"]).await;
        assert!(list.contains("user=locker"), "{list}");
    }
    drop(manager);
    assert_nothing_left(&cluster).await;
    assert_nobody_listens(&cluster).await;
}

#[test]
fn what_makes_no_store_is_refused_without_a_password() {
    let options = ServerOptions::new;
    let cluster = |nodes: &[&str]| RedisStore::from_cluster(nodes.to_vec(), options());
    let none: [&str; 0] = [];
    let client = redis::Client::open("redis://:s3cret@h").unwrap();
    let zero = options().heartbeat(Duration::ZERO);
    let cases = [
        (cluster(&none), "needs a node"),
        (cluster(&["redis://:s3cret@h1", "redis://:other@h2"]), "have one login"),
        (cluster(&["redis://:s3cret@h1", "rediss://:s3cret@h2"]), "TLS on all of them"),
        (cluster(&["redis://:s3cret@h1/1"]), "no databases"),
        (cluster(&["redis+unix:///s"]), "a host and a port"),
        (cluster(&["http://:s3cret@h1"]), "is invalid"),
        (RedisStore::from_sentinels(none, "m", "redis://h", options()), "needs a sentinel"),
        (RedisStore::from_sentinels(["x:s3cret"], "m", "redis://h", options()), "is invalid"),
        (RedisStore::from_client(client, zero), "`heartbeat` must not be zero"),
    ];
    for (store, expected) in cases {
        let error = store.unwrap_err();
        assert!(matches!(error, Error::InvalidOptions(_)), "{error:?}");
        let text = format!("{error} {error:?}");
        assert!(text.contains(expected) && !text.contains("s3cret"), "{expected}: {text}");
    }
}

/// A socket's own settings are kept, and small requests are sent at once.
#[test]
fn the_address_of_a_client_is_shown_and_nothing_else() {
    let info = "redis://locker:s3cret@db-1:7000/2".into_connection_info().unwrap();
    let client = redis::Client::open(info).unwrap();
    let store = RedisStore::from_client(client, ServerOptions::new().connections(3)).unwrap();
    let shown = format!("{store:?}");
    assert!(shown.contains("db-1:7000") && shown.contains("connections: 3"), "{shown}");
    assert!(!shown.contains("s3cret"), "{shown}");
}

fn redis_url(addr: &str) -> String {
    format!("redis://{addr}")
}
