//! A password that rotates while locks are acquired.

use std::sync::atomic::{AtomicUsize, Ordering};

use lockattr::store::{Credentials, EtcdStore, ServerOptions};
use lockattr_tests::{HUNG, Load, Release, Rotating, eventually, in_time};
use tonic::transport::Endpoint;

use super::rights::with_users;
use super::*;
use crate::provider::{Provider, Reply};

fn store(etcd: &Etcd, secret: &Rotating) -> EtcdStore {
    let endpoints = etcd
        .addrs()
        .into_iter()
        .map(|addr| Endpoint::from_shared(format!("http://{addr}")).expect("an address"));
    let options = ServerOptions::new().connect_timeout(HUNG).response_timeout(HUNG);
    let store = EtcdStore::from_endpoints(endpoints, options.credentials(secret.provider()));
    store.unwrap().with_session_timeout(20 * HUNG).unwrap()
}

/// Red without: the provider in `Config::token`.
#[tokio::test]
async fn no_acquire_fails_while_a_password_rotates() {
    let etcd = with_users().await;
    let old = url_of("app", &etcd);
    let secret = Rotating::new(Credentials::new("app", "s3cret/"));
    let mut load = Load::new(LockOptions::new().wait(2 * HUNG).ttl(10 * HUNG), Release::Awaited);
    for _ in 0..2 {
        let store = Arc::new(store(&etcd, &secret));
        let manager = LockManager::builder().store(store).connect().await.unwrap();
        load.add(&manager, ["one"]);
        load.add(&manager, ["other"]);
    }
    for nth in 0..3 {
        {
            let mut secret = secret.change().await;
            let next = format!("r0tated-{nth}");
            let words = ["user", "passwd", "app", "--interactive=false"];
            // This also ends the user's tokens.
            etcd.ctl_with_input(&words, &next).await;
            *secret = Credentials::new("app", next);
        }
        load.goes_on(5).await;
    }
    let worked = load.stop().await.unwrap_or_else(|error| panic!("not acquired: {error:?}"));
    assert!(worked.failed_release.is_none(), "not released: {worked:?}");
    // A store that keeps the old password cannot connect, so the test can fail.
    let refused = LockManager::connect(&old).await.unwrap_err();
    let text = format!("{refused} {refused:?}");
    assert!(text.contains("authentication failed") && !text.contains("s3cret"), "{text}");
}

/// Red without: the second question in `Config::token`.
#[tokio::test]
async fn a_password_that_changes_on_its_way_is_asked_for_again() {
    let etcd = with_users().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let manager = LockManager::builder()
        .url(etcd.url())
        .credentials(move || {
            let first = counted.fetch_add(1, Ordering::Relaxed) == 0;
            let password = if first { "0utdated" } else { "s3cret/" };
            async move { Ok::<_, std::io::Error>(Credentials::new("app", password)) }
        })
        .connect()
        .await
        .unwrap();
    manager.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
    assert!(asked.load(Ordering::Relaxed) >= 2);
}

#[tokio::test]
async fn credentials_without_a_user_are_refused_with_what_to_return() {
    let etcd = with_users().await;
    let outcome = LockManager::builder()
        .url(etcd.url())
        .credentials(|| async { Ok::<_, std::io::Error>(Credentials::password_only("s3cret/")) })
        .connect()
        .await;
    let text = outcome.unwrap_err().to_string();
    assert!(
        text.contains("Credentials::new(user, password)") && !text.contains("s3cret"),
        "{text}"
    );
}

fn app() -> Reply {
    Reply::Answer(Credentials::new("app", "s3cret/"))
}

/// Red without: the `timeout` and the `catch_unwind` in `CredentialsProvider::current`.
#[tokio::test]
async fn a_provider_that_hangs_or_panics_is_named_and_asked_again() {
    let etcd = with_users().await;
    for (reply, says) in [(Reply::Hang, "has not answered"), (Reply::Panic, "panicked")] {
        let provider = Provider::new(reply);
        let manager = LockManager::builder()
            .url(etcd.url_with("connect_timeout=2s"))
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
        provider.set(app());
        in_time(manager.acquire("a", LockOptions::new())).await.unwrap().release().await.unwrap();
    }
}

/// Red without: `token_as_before` in `etcd/login.rs`.
#[tokio::test]
async fn no_lock_is_lost_while_a_token_has_ended_and_the_provider_does_not_answer() {
    let etcd = with_users().await;
    let provider = Provider::new(app());
    // Only a heartbeat keeps the session alive, and no hanging provider delays it for long.
    let url = etcd.url_with("heartbeat=1s&connect_timeout=1s");
    let ours = LockManager::builder().url(url).credentials(provider.function()).build().unwrap();
    for reply in [Reply::Hang, Reply::Fail, Reply::Panic] {
        let held = ours.acquire("held", LockOptions::new()).await.unwrap();
        let session = etcd.lease_of("lock:held/").await;
        provider.set(reply);
        // Before the tokens end: a keep-alive may find that out before the command returns.
        let before = provider.asked();
        // This ends the user's tokens, although the password remains.
        let words = ["user", "passwd", "app", "--interactive=false"];
        etcd.ctl_with_input(&words, "s3cret/").await;
        is_kept_alive(&etcd, &session).await;
        assert!(provider.asked() > before, "the token has ended");
        held.release().await.unwrap();
        provider.set(app());
    }
}
