//! What the tests of TLS by a URL have in common.

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::HUNG;

/// Two processes take turns at a lock, so requests, replies and notifications arrive.
pub(crate) async fn locks(url: &str) {
    let connect = async || match LockManager::connect(url).await {
        Ok(manager) => manager,
        Err(error) => panic!("{url}: {error}"),
    };
    let (one, other) = (connect().await, connect().await);
    let held = one.acquire("a", LockOptions::new()).await.expect("it is free");
    let next = tokio::spawn(async move {
        let held = other.acquire("a", LockOptions::new().wait(HUNG)).await.expect("granted");
        held.release().await.expect("released");
    });
    held.release().await.expect("released");
    next.await.expect("the waiter is notified");
}

/// Returns what the refusal says. It does not quote the password.
pub(crate) async fn refused(url: &str) -> String {
    match LockManager::connect(url).await {
        Err(error @ Error::Store { .. }) => {
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
            error.to_string()
        }
        other => panic!("{url}: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn assert_says(sentence: &str, says: &str) {
    assert!(sentence.contains(says), "{sentence}");
}
