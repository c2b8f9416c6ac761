//! The settings of a URL, and the access rights on its nodes.

use lockattr::Error;
use lockattr_tests::{Engine, with_query};

use super::*;
use crate::support::assert_refused;

#[test]
fn invalid_urls_are_refused_with_a_message() {
    let hosts = "zookeeper://h1,h2:2182/locks";
    for (query, named) in [
        ("session_timeout=soon", "`session_timeout=soon`"),
        ("session_timeout=0s", "`session_timeout` must"),
        ("response_timeout=0s", "`response_timeout` must"),
        ("heartbeat=1s", "`session_timeout`, `connect_timeout`"),
        ("tls=on", "`true` or `false`"),
        ("tls=true", "names the port of each server"),
        ("ca=/nowhere", "add `tls=true`"),
        ("tls=true&client_cert=/nowhere", "`client_key`"),
        ("tls=true&ca=/nowhere", "`ca=/nowhere` cannot be read"),
    ] {
        assert_refused(&[(&with_query(hosts, query), named)]);
    }
    assert_refused(&[
        ("zookeeper://h1/zookeeper/x", "`zookeeper` first"),
        ("zookeeper://h1/a%2F..%2Fb", "path"),
        ("zookeeper://app@h1/", "both user and password"),
    ]);
    let store = ZookeeperStore::open("zookeeper://app:s3cret@h1,h2/").unwrap();
    assert!(!format!("{store:?}").contains("s3cret"));
}

#[tokio::test]
async fn a_session_shorter_than_requested_is_refused_and_the_message_says_what_to_set() {
    let ensemble = ZooKeeper::shared().await;
    let url = with_query(&ensemble.url_apart(), "session_timeout=2h");
    let error = LockManager::connect(&url).await.unwrap_err().to_string();
    assert!(error.contains("maxSessionTimeout") && error.contains("3600s"), "{error}");
}

#[tokio::test]
async fn a_ttl_beyond_half_a_session_is_refused() {
    let ensemble = ZooKeeper::shared().await;
    let url = with_query(&ensemble.url_apart(), "session_timeout=20s");
    let error = LockManager::connect(&with_query(&url, "ttl=11s")).await.unwrap_err().to_string();
    assert!(error.contains("10s at most"), "{error}");
    assert!(LockManager::connect(&with_query(&url, "ttl=11s&session_timeout=22s")).await.is_ok());
}

#[tokio::test]
async fn the_nodes_of_a_login_are_closed_to_others() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    let login = |who: &str| url.replacen("://", &format!("://{who}@"), 1);
    let ours = LockManager::connect(&login("app:s3cret")).await.unwrap();
    let held = ours.acquire("a", LockOptions::new()).await.unwrap();
    for other in [&login("app:wrong"), &url] {
        let connected = LockManager::connect(other).await.unwrap_err();
        let other = LockManager::builder().url(other).build().unwrap();
        let options = LockOptions::new().wait(Duration::from_secs(1));
        let outcome = other.acquire("a", options).await.unwrap_err();
        for error in [connected, outcome] {
            assert!(matches!(error, Error::Store { .. }), "{error}");
            assert!(!error.to_string().contains("s3cret") && !error.to_string().contains("wrong"));
        }
    }
    held.release().await.unwrap();
    let again = ours.acquire("a", LockOptions::new()).await.unwrap();
    again.release().await.unwrap();
}

/// The client needs no rights above the node that the URL names.
#[tokio::test]
async fn the_root_may_be_closed_to_readers() {
    let ensemble = ZooKeeper::single().await;
    let url = ensemble.url_apart();
    ensemble.hide("/").await;
    let manager = LockManager::connect(&url).await.expect("its node is not there yet");
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    let other = LockManager::connect(&url).await.expect("and now it is");
    assert!(other.try_acquire("a", LockOptions::new()).await.unwrap().is_none());
    held.release().await.unwrap();
    drop((manager, other));
    nothing_is_left(&ensemble, &url).await;
}

#[tokio::test]
async fn parent_nodes_are_created_and_deleted_with_their_locks() {
    let ensemble = ZooKeeper::shared().await;
    let chroot = format!("{}/deep/down", ensemble.chroot_apart());
    let url = ensemble.url_below(&ensemble.addrs(), &chroot);
    let manager = LockManager::connect(&url).await.unwrap();
    for _ in 0..3 {
        // It would repeat a request that fails, if it waited.
        let held = manager.try_acquire("a/b", LockOptions::new()).await.unwrap().unwrap();
        let entries = line(ensemble, &url, "a%2Fb").await;
        assert_eq!(entries.len(), 1);
        held.release().await.unwrap();
        // The session is still alive, and none of its nodes is left.
        nothing_is_left(ensemble, &url).await;
    }
}
