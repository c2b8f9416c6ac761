//! What the tests of TLS by a URL have in common.

use std::path::{Path, PathBuf};

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{HUNG, eventually};
use tempfile::TempDir;

use crate::support::works;

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

/// A manager is made while its files are those of another authority. Once each file is replaced, in the
/// order in which a program would do it, the same manager locks.
///
/// The files are the authority's, the client's and its key. `url` makes a URL of their paths.
pub(crate) async fn rotates(
    before: [PathBuf; 3],
    after: [PathBuf; 3],
    url: impl Fn([&Path; 3]) -> String,
) {
    let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
    let names = ["ca.pem", "client.pem", "client.key"].map(|name| directory.path().join(name));
    let replace = |files: &[PathBuf; 3], nth: usize| {
        let next = directory.path().join("next");
        std::fs::copy(&files[nth], &next).expect("a file");
        std::fs::rename(&next, &names[nth]).expect("our own directory");
    };
    (0..3).for_each(|nth| replace(&before, nth));
    let url = url(names.each_ref().map(PathBuf::as_path));
    let manager = LockManager::builder().url(&url).build().expect("files that fit together");
    assert!(!works(&manager).await, "the server is another authority's");
    for nth in 0..3 {
        replace(&after, nth);
        if nth < 2 {
            assert!(!works(&manager).await, "the certificate is another authority's");
        }
    }
    eventually("the next connection presents what the files have now", async || {
        works(&manager).await
    })
    .await;
}
