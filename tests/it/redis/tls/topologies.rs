//! TLS to several servers at once: every one of them must show a certificate that is trusted.

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Independents, RedisServer, Sentinels, assert_nothing_left};

/// The files of one server are good for all: they have one authority.
fn with_files(url: &str, server: &RedisServer, authority: bool) -> String {
    let (cert, key) = (server.client_cert_path(), server.client_key_path());
    let files = format!("{url}&cert={}&key={}", cert.display(), key.display());
    match authority {
        true => format!("{files}&ca={}", server.ca_path().display()),
        false => files,
    }
}

async fn cycles(url: &str) {
    let manager = LockManager::connect(url).await.unwrap();
    let other = LockManager::connect(url).await.unwrap();
    let held = manager.acquire("a", LockOptions::new()).await.unwrap();
    let waits = tokio::spawn(async move { other.acquire("a", LockOptions::new()).await });
    tokio::task::yield_now().await;
    held.release().await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_quorum_is_asked_over_tls() {
    let servers = Independents::builder()
        .count(3)
        .servers(RedisServer::builder().tls_clients().password("s3cret"))
        .tls();
    let servers = servers.start().await;
    let url = format!("{}&durable=true", servers.tls_url());
    cycles(&with_files(&url, servers.node(0), true)).await;
    let wrong = LockManager::connect(with_files(&url, servers.node(0), false)).await.unwrap_err();
    assert!(matches!(wrong, Error::Store { .. }), "{wrong:?}");
    assert!(
        wrong.to_string().contains("certificate") || format!("{wrong:?}").contains("ertificate")
    );
    assert_nothing_left(&servers).await;
}

#[tokio::test]
async fn sentinels_and_their_master_are_asked_over_tls() {
    let servers =
        Sentinels::builder().replicas(1).servers(RedisServer::builder().tls_clients()).tls();
    let servers = servers.start().await;
    let master = servers.master().await;
    cycles(&with_files(&servers.tls_url(), master, true)).await;
    let url = with_files(&servers.tls_url(), master, false);
    let wrong = LockManager::connect(&url).await.unwrap_err();
    assert!(matches!(wrong, Error::Store { .. }), "{wrong:?}");
    assert_nothing_left(&servers).await;
}
