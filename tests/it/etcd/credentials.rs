//! A password that rotates while locks are acquired.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lockattr::store::{Credentials, EtcdStore, ServerOptions};
use lockattr_tests::{Engine, Etcd, eventually};
use tokio::sync::Mutex;
use tonic::transport::Endpoint;

use super::rights::with_users;
use super::*;

/// The server computes for long to check a password.
const PATIENCE: Duration = Duration::from_secs(30);

/// A store whose password is kept in a secret store, which does not answer while it changes it.
fn store(etcd: &Etcd, secret: &Arc<Mutex<String>>) -> EtcdStore {
    let endpoints = etcd
        .addrs()
        .into_iter()
        .map(|addr| Endpoint::from_shared(format!("http://{addr}")).expect("an address"));
    let secret = secret.clone();
    let options =
        ServerOptions::new().connect_timeout(SOON).response_timeout(SOON).credentials(move || {
            let secret = secret.clone();
            async move {
                let current = secret.lock().await.clone();
                Ok::<_, std::io::Error>(Credentials::new("app", current))
            }
        });
    EtcdStore::from_endpoints(endpoints, options).unwrap()
}

/// Red without: the provider in `Config::token`.
#[tokio::test]
async fn no_acquire_fails_while_a_password_rotates() {
    let etcd = with_users().await;
    let old = etcd.url().replace("etcd://", "etcd://app:s3cret%2F@")
        + "?response_timeout=10s&connect_timeout=10s";
    let secret = Arc::new(Mutex::new("s3cret/".to_owned()));
    let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut load = Vec::new();
    for _ in 0..2 {
        let manager =
            LockManager::builder().store(Arc::new(store(&etcd, &secret))).connect().await.unwrap();
        for key in ["one", "other"] {
            let (manager, stop, count) = (manager.clone(), stop.clone(), count.clone());
            load.push(tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let held = manager.acquire(key, long_wait()).await;
                    let held = held.unwrap_or_else(|error| panic!("not acquired: {error:?}"));
                    held.release().await.unwrap_or_else(|error| panic!("not released: {error:?}"));
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
    }
    for nth in 0..3 {
        {
            let mut secret = secret.lock().await;
            let next = format!("r0tated-{nth}");
            let words = ["--user=root:root", "user", "passwd", "app", "--interactive=false"];
            // This also ends the user's tokens.
            etcd.ctl_with_input(&words, &next).await;
            *secret = next;
        }
        let before = count.load(Ordering::Relaxed);
        let goes_on = async || {
            count.load(Ordering::Relaxed) > before + 20
                || load.iter().any(tokio::task::JoinHandle::is_finished)
        };
        eventually(PATIENCE, "locks are acquired with the new password", goes_on).await;
    }
    stop.store(true, Ordering::Relaxed);
    for task in load {
        task.await.expect("no acquire fails");
    }
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
        .url(etcd.url() + "?response_timeout=10s&connect_timeout=10s")
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
