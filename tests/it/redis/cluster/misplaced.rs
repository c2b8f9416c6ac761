//! Nodes of a cluster behind a URL that names a single server, or several independent ones.

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Cluster, Fault, Proxy, RedisServer, patient};

/// Red without: `cluster_node::is_one`.
#[tokio::test]
async fn a_url_that_leads_to_a_node_of_a_cluster_is_refused_with_the_one_to_write() {
    let cluster = Cluster::shared().await;
    let mut addrs = Vec::new();
    for slot in [0, 8_191, 16_383] {
        addrs.push(cluster.master_of(slot).await.addr());
    }
    let (one, all) = (&addrs[0], addrs.join(","));
    for url in [format!("redis://{one}/"), format!("redlock://{all}/")] {
        let refused = LockManager::connect(patient(&url)).await.expect_err("it is a node");
        let text = refused.to_string();
        // The first server of a quorum that replied.
        let is_named = |addr: &String| text.contains(&format!("`redis+cluster://{addr}`"));
        assert!(addrs.iter().any(is_named), "{text}");
        let is_alone = url.starts_with("redis:");
        assert_eq!(matches!(refused, Error::InvalidOptions(_)), is_alone, "{refused:?}");
    }
    LockManager::connect(patient(&format!("redis+cluster://{all}/"))).await.unwrap();
}

/// A server may also become one later, or is a service that only looks like one server.
///
/// Red without: `cluster_node::is_shown_by`.
#[tokio::test]
async fn an_error_that_only_a_node_of_a_cluster_replies_names_the_url_to_write() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let manager = LockManager::connect(server.url_through(&proxy)).await.unwrap();
    let advice = format!("`redis+cluster://{}`", proxy.addr());
    for reply in [
        "MOVED 1 127.0.0.1:1",
        "ASK 1 127.0.0.1:1",
        "CROSSSLOT Keys in request don't hash to the same slot",
        "CLUSTERDOWN Hash slot not served",
    ] {
        proxy.always("acquire", Fault::Answer(reply.into()));
        let refused = manager.acquire("a", LockOptions::new().retry(0)).await.unwrap_err();
        let text = refused.to_string();
        assert!(text.contains(&advice), "{reply}: {text}");
    }
}
