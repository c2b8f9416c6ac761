//! Stores that a program makes with its own connector.

use lockattr::Error;
use lockattr::store::ServerOptions;
use lockattr_tests::{Engine, HUNG};
use zookeeper_client::Client;

use super::*;

fn options() -> ServerOptions {
    ServerOptions::new().connect_timeout(HUNG).response_timeout(HUNG)
}

#[tokio::test]
async fn stores_from_a_connector_and_from_a_url_share_their_locks() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    let connector = Client::connector().with_auth("digest", b"app:s3cret");
    let cluster = format!("tcp://{}{}", ensemble.addrs().join(",tcp://"), chroot(&url));
    let store = ZookeeperStore::from_connector(connector, &cluster, options()).unwrap();
    let store = store.with_private_nodes().with_session_timeout(2 * HUNG).unwrap();
    // Longer than a session of twenty seconds allows.
    let ours = LockManager::builder().store(Arc::new(store)).ttl(HUNG).connect().await.unwrap();
    let held = ours.acquire("a", LockOptions::new()).await.unwrap();
    let theirs = LockManager::connect(url.replacen("://", "://app:s3cret@", 1)).await.unwrap();
    assert!(theirs.try_acquire("a", LockOptions::new()).await.unwrap().is_none());
    held.release().await.unwrap();
    let held = theirs.acquire("a", LockOptions::new()).await.unwrap();
    assert!(ours.try_acquire("a", LockOptions::new()).await.unwrap().is_none());
    // A client that has not authenticated itself reaches none of the nodes.
    let stranger = LockManager::connect(&url).await.unwrap_err();
    assert!(stranger.to_string().contains("rights"), "{stranger}");
    held.release().await.unwrap();
}

#[test]
fn a_cluster_without_servers_and_a_wrong_path_are_refused() {
    let refused = |outcome: Result<ZookeeperStore, Error>| match outcome {
        Err(Error::InvalidOptions(sentence)) => sentence,
        other => panic!("{other:?}"),
    };
    let store = |cluster| ZookeeperStore::from_connector(Client::connector(), cluster, options());
    for cluster in ["", "h1,,h2", "/locks"] {
        let sentence = refused(store(cluster));
        assert!(sentence.contains("host1,host2"), "{cluster}: {sentence}");
    }
    assert!(refused(store("tcp+tls://h1,h2/zookeeper")).contains("`zookeeper` first"));
    let store = store("tcp+tls://h1:2281,tcp+tls://h2:2281/locks").unwrap();
    let shown = format!("{store:?}");
    assert!(shown.contains("zookeeper://h1:2281,h2:2281/"), "{shown}");
    let sentence = refused(store.with_session_timeout(Duration::ZERO));
    assert!(sentence.contains("`session_timeout`"), "{sentence}");
}
