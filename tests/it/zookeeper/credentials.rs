//! A login that a provider returns for each session.

use std::sync::atomic::{AtomicUsize, Ordering};

use lockattr::store::Credentials;
use lockattr_tests::{Engine, in_time, with_query};

use super::*;
use crate::provider::{Provider, Reply};

/// Red without: the provider in `Login::current`.
#[tokio::test]
async fn each_session_asks_for_its_login() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let ours = LockManager::builder()
        .url(&url)
        .credentials(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, std::io::Error>(Credentials::new("app", "s3cret")) }
        })
        .connect()
        .await
        .unwrap();
    let held = ours.acquire("a", LockOptions::new()).await.unwrap();
    let before = asked.load(Ordering::Relaxed);
    // The nodes belong to the login that was returned, and to no other.
    let theirs = LockManager::connect(url.replacen("://", "://app:s3cret@", 1)).await.unwrap();
    assert!(theirs.try_acquire("a", LockOptions::new()).await.unwrap().is_none());
    let stranger = LockManager::connect(&url).await.unwrap_err();
    assert!(stranger.to_string().contains("rights"), "{stranger}");
    // The next session authenticates itself too: otherwise it could not use the nodes.
    let connector = zookeeper_client::Client::connector().with_auth("digest", b"app:s3cret");
    let client = connector.connect(&ensemble.addrs().join(",")).await.unwrap();
    // A server that lags still has the entry of the one that was refused.
    client.sync("/").await.unwrap();
    let entries = client.list_children(&format!("{}/lock:a", chroot(&url))).await.unwrap();
    assert_eq!(entries.len(), 1, "{entries:?}");
    end_session_of(ensemble, &entries[0]).await;
    in_time(held.lost()).await;
    let again = in_time(ours.acquire("a", LockOptions::new())).await.unwrap();
    assert!(asked.load(Ordering::Relaxed) > before);
    again.release().await.unwrap();
}

/// Red without: `why_missing` in `make.rs`. The error was that the node does not exist.
#[tokio::test]
async fn an_error_about_a_node_above_that_belongs_to_another_login_is_about_rights() {
    let ensemble = ZooKeeper::shared().await;
    let (addrs, chroot) = (ensemble.addrs(), ensemble.chroot_apart());
    let owner = ensemble.url_below(&addrs, &chroot).replacen("://", "://app:s3cret@", 1);
    let owner = LockManager::connect(owner).await.unwrap();
    let held = owner.acquire("a", LockOptions::new()).await.unwrap();
    let below = ensemble.url_below(&addrs, &format!("{chroot}/other"));
    let stranger = LockManager::builder().url(&below).build().unwrap();
    let refused = stranger.try_acquire("b", LockOptions::new()).await.unwrap_err();
    assert!(refused.to_string().contains("rights"), "{refused}");
    held.release().await.unwrap();
}

/// Red without: the `timeout` and the `catch_unwind` in `CredentialsProvider::current`.
#[tokio::test]
async fn a_provider_that_hangs_or_panics_is_named_and_asked_again() {
    let ensemble = ZooKeeper::shared().await;
    for (reply, says) in [(Reply::Hang, "has not answered"), (Reply::Panic, "panicked")] {
        let provider = Provider::new(reply);
        let manager = LockManager::builder()
            .url(with_query(&ensemble.url_apart(), "connect_timeout=2s"))
            .credentials(provider.function())
            .build()
            .unwrap();
        let is_named = async || {
            let refused = manager.acquire("a", LockOptions::new().retry(0)).await;
            let text = format!("{:?}", refused.unwrap_err());
            assert!(!text.contains("s3cret"), "{text}");
            text.contains("the credentials provider") && text.contains(says)
        };
        // A connection has two seconds, and its provider another two.
        eventually("it is named", is_named).await;
        provider.set(Reply::Answer(Credentials::new("app", "s3cret")));
        in_time(manager.acquire("a", LockOptions::new())).await.unwrap().release().await.unwrap();
    }
}
