//! The nodes of locks, which are removed with the last entry.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;
use lockattr_tests::Engine;

use super::*;

/// Each process that leaves a queue tries to remove its node, while others enter, and while others
/// that have left try the same.
///
/// Red without: the entry that is tried again when the node is gone.
#[tokio::test]
async fn a_node_that_is_removed_keeps_nobody_from_entering() {
    let ensemble = ZooKeeper::start().await;
    let url = ensemble.url();
    let managers = try_join_all((0..6).map(|_| LockManager::connect(&url))).await.unwrap();
    for round in 0..40 {
        let key = format!("new{round}");
        let options = LockOptions::new().wait(LIMIT);
        let each = managers.iter().map(async |manager| {
            let guard = manager.acquire(&key, options.clone()).await?;
            let token = guard.fencing_token();
            guard.release().await?;
            Ok::<_, lockattr::Error>(token)
        });
        let tokens: BTreeSet<_> = try_join_all(each).await.unwrap().into_iter().collect();
        assert_eq!(tokens.len(), managers.len());
    }
    let rest = async || ensemble.left_below(&chroot(&url)).await.len() <= 1;
    eventually(LIMIT, "no node of a lock is left", rest).await;
}

/// The node of a lock is removed by hand, and with it what this store knows about it is wrong.
#[tokio::test]
async fn a_node_that_another_program_removed_is_made_again() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    let manager = LockManager::connect(&url).await.unwrap();
    // Used often enough to be kept.
    for _ in 0..3 {
        manager.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
    }
    let path = format!("{}/lock:a", chroot(&url));
    let is_gone = async || !ensemble.left_below(&chroot(&url)).await.contains(&path);
    eventually(LIMIT, "the servers or the store remove it", is_gone).await;
    for _ in 0..2 {
        let held = manager.acquire("a", LockOptions::new()).await.unwrap();
        assert_eq!(line(ensemble, &url, "a").await.len(), 1);
        held.release().await.unwrap();
    }
    nothing_is_left(ensemble, &url).await;
}
