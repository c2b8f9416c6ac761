//! Users and their rights.

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Engine, Etcd};

use super::manager;

/// Starts etcd with users that have exactly the rights that the docs name.
pub(super) async fn with_users() -> Etcd {
    let etcd = Etcd::start().await;
    for words in [
        "user add root:root",
        "user grant-role root root",
        "role add locker",
        "role grant-permission locker --prefix=true readwrite lock:",
        "role grant-permission locker --prefix=true readwrite lockattr/session/",
        "user add app:s3cret/",
        "user grant-role app locker",
        "auth enable",
    ] {
        etcd.ctl(&words.split(' ').collect::<Vec<_>>()).await;
    }
    etcd
}

#[tokio::test]
async fn a_user_with_the_least_rights_locks_also_after_its_token_has_ended() {
    let etcd = with_users().await;
    // The server computes for long to check a password.
    let url = etcd.url().replace("etcd://", "etcd://app:s3cret%2F@") + "?response_timeout=10s";
    let (here, there) = (manager(&url).await, manager(&url).await);
    for _ in 0..2 {
        let held = here.acquire("rights", LockOptions::new()).await.unwrap();
        let waits = {
            let there = there.clone();
            tokio::spawn(async move { there.acquire("rights", super::long_wait()).await })
        };
        held.release().await.unwrap();
        waits.await.unwrap().unwrap().release().await.unwrap();
        // Deleting a user also invalidates its tokens.
        for words in ["user delete app", "user add app:s3cret/", "user grant-role app locker"] {
            let words = std::iter::once("--user=root:root").chain(words.split(' '));
            etcd.ctl(&words.collect::<Vec<_>>()).await;
        }
    }
    let left = etcd.ctl(&["--user=root:root", "get", "lock:", "--prefix", "--keys-only"]).await;
    assert_eq!(left, "");
}

#[tokio::test]
async fn a_login_without_rights_gets_an_error_without_the_password() {
    let etcd = with_users().await;
    // The server computes for long to check a password.
    let as_whom = |login: &str| {
        let url = etcd.url().replace("etcd://", &format!("etcd://{login}"));
        url.clone()
    };
    for (login, says) in [
        ("", "etcd://user:password@host/"),
        ("app:wr0ng@", "authentication failed"),
        ("nobody:wr0ng@", "authentication failed"),
    ] {
        let refused = LockManager::connect(as_whom(login)).await.expect_err("no rights");
        let text = format!("{refused} {refused:?}");
        assert!(text.contains(says) && !text.contains("wr0ng"), "{text}");
    }
    let elsewhere = manager(&(as_whom("app:s3cret%2F@") + "&prefix=other:")).await;
    let once = LockOptions::new().wait(std::time::Duration::ZERO);
    let refused = elsewhere.acquire("rights", once).await.expect_err("no rights");
    assert!(refused.to_string().contains("permission denied"), "{refused}");
}
