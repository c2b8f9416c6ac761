//! Tests of independent servers: each is killed, paused and wiped separately.

use lockattr_tests::{Fault, Independents, RedisServer, assert_nothing_left, bare};

async fn set(url: &str) -> bool {
    let client = redis::Client::open(url).unwrap();
    let Ok(mut connection) = super::connect(&client).await else {
        return false;
    };
    redis::cmd("SET").arg("lock:fence").arg(7).exec_async(&mut connection).await.is_ok()
}

/// Returns a URL for each host of a URL.
fn hosts(url: &str) -> Vec<String> {
    let url = bare(url);
    let (_, hosts) = url.split_once("://").unwrap();
    hosts.split(',').map(|host| format!("redis://{host}/")).collect()
}

#[tokio::test]
async fn each_is_reached_by_itself_and_through_its_proxy() {
    let servers = Independents::start(5).await;
    assert!(servers.url_with("ttl=1s").starts_with("redlock://127.0.0.1:"));
    assert!(servers.url_with("ttl=1s").ends_with("&ttl=1s"));
    let (near, far) = (hosts(&servers.url()), hosts(&servers.url_through_proxies().await));
    assert_eq!((near.len(), far.len()), (5, 5));
    let proxies = servers.proxies().await;
    proxies[4].always("set", Fault::CutBefore);
    for number in 0..5 {
        assert!(set(&near[number]).await);
        assert_eq!(set(&far[number]).await, number != 4);
        assert_eq!(proxies[number].seen("set"), 1);
    }
    assert_nothing_left(&servers).await;
}

#[tokio::test]
async fn one_dies_alone_and_comes_back_with_its_data_or_without() {
    let lasting = RedisServer::builder().appendonly();
    let servers = Independents::builder().count(3).servers(lasting).start().await;
    let urls = hosts(&servers.url());
    for url in &urls {
        assert!(set(url).await);
    }
    servers.kill(1);
    assert!(!set(&urls[1]).await);
    assert!(set(&urls[0]).await && set(&urls[2]).await);
    let value = async || servers.node(1).cli().await.value("lock:fence").await;
    servers.revive(1).await;
    assert_eq!(value().await.as_deref(), Some("7"));
    servers.restart(1).await;
    assert_eq!(value().await, None);

    servers.stop_signal(2);
    servers.node(0).cli().await.query::<()>(&["SET", "lock:a", "theirs", "PX", "100"]).await;
    // A paused server would not respond.
    assert_nothing_left(&servers).await;
    servers.continue_signal(2);
    assert!(set(&urls[2]).await);
}
