//! Users and their rights.

use lockattr_tests::{in_time, with_query};

use super::*;

/// Starts etcd with users that have exactly the rights that the docs name.
pub(super) async fn with_users() -> Etcd {
    let etcd = Etcd::single().await;
    for words in [
        "role add locker",
        "role grant-permission locker --prefix=true readwrite lock:",
        "role grant-permission locker --prefix=true readwrite lockattr/session/",
        "user add app:s3cret/",
        "user grant-role app locker",
    ] {
        etcd.ctl(&words.split(' ').collect::<Vec<_>>()).await;
    }
    etcd.protect().await;
    etcd
}

#[tokio::test]
async fn a_user_with_the_least_rights_locks_also_after_its_token_has_ended() {
    let etcd = with_users().await;
    let url = url_of("app", &etcd);
    let (here, there) = (manager(&url).await, manager(&url).await);
    for _ in 0..2 {
        let held = in_time(here.acquire("rights", LockOptions::new())).await.unwrap();
        let waits = {
            let there = there.clone();
            tokio::spawn(async move { there.acquire("rights", LockOptions::new()).await })
        };
        held.release().await.unwrap();
        in_time(waits).await.unwrap().unwrap().release().await.unwrap();
        // Deleting a user also invalidates its tokens.
        for words in ["user delete app", "user add app:s3cret/", "user grant-role app locker"] {
            etcd.ctl(&words.split(' ').collect::<Vec<_>>()).await;
        }
    }
    assert_eq!(etcd.left().await, [""; 0]);
}

#[tokio::test]
async fn a_login_without_rights_gets_an_error_without_the_password() {
    let etcd = with_users().await;
    let as_whom = |login: &str| etcd.url().replace("etcd://", &format!("etcd://{login}"));
    for (login, says) in [
        ("", "etcd://user:password@host/"),
        ("app:wr0ng@", "authentication failed"),
        ("nobody:wr0ng@", "authentication failed"),
    ] {
        let refused = LockManager::connect(as_whom(login)).await.expect_err("no rights");
        let text = format!("{refused} {refused:?}");
        assert!(text.contains(says) && !text.contains("wr0ng"), "{text}");
    }
    let elsewhere = manager(&with_query(&url_of("app", &etcd), "prefix=other:")).await;
    let refused = elsewhere.try_acquire("rights", LockOptions::new()).await.expect_err("no rights");
    assert!(refused.to_string().contains("permission denied"), "{refused}");
}
