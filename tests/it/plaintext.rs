//! Connections to another machine that are not encrypted are reported in the log, once.
//!
//! `127.1` is this machine, in a form that only the resolver knows.

use lockattr::LockManager;
use lockattr_tests::{RedisServer, capture_events};

const WARNING: &str = "the connections to this server are not encrypted";

/// Red without: `plaintext::warn_once` in `Endpoint::connect`.
#[tokio::test]
async fn plaintext_to_a_remote_redis_is_reported_once() {
    let events = capture_events();
    let server = RedisServer::start().await;
    LockManager::connect(server.url()).await.unwrap();
    assert_eq!(events.count(WARNING), 0, "{:?}", events.all());
    for _ in 0..2 {
        LockManager::connect(server.url().replace("127.0.0.1", "127.1")).await.unwrap();
    }
    assert_eq!(events.count(WARNING), 1, "{:?}", events.all());
    assert_eq!(events.count("write `rediss://`"), 1, "{:?}", events.all());
}

/// Red without: `warn_about_plaintext`, of either store.
#[tokio::test]
async fn plaintext_to_remote_members_is_reported_once_and_tls_is_not() {
    for (local, remote, encrypted, advice) in [
        ("etcd://127.0.0.1,[::1]", "etcd://127.0.0.1,db.example", "?tls=true", "`tls=true`"),
        (
            "zookeeper://localhost",
            "zookeeper://user:hunter2@db.example:2281/a",
            "?tls=true",
            "`tls=true`",
        ),
    ] {
        let events = capture_events();
        let build = |url: &str| LockManager::builder().url(url).build().unwrap();
        build(local);
        build(&format!("{remote}{encrypted}"));
        assert_eq!(events.count(WARNING), 0, "{:?}", events.all());
        for _ in 0..2 {
            build(remote);
        }
        assert_eq!(events.count(WARNING), 1, "{:?}", events.all());
        assert_eq!((events.count(advice), events.count("hunter2")), (1, 0), "{:?}", events.all());
    }
}
