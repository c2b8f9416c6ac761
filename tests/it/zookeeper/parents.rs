//! The nodes of locks, which are removed with the last entry.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;
use lockattr::FencingToken;
use lockattr_tests::Engine;

use super::*;

/// Each process that leaves a queue tries to remove its node, while others enter, and while others
/// that have left try the same.
///
/// Red without: the entry that is tried again when the node is gone.
#[tokio::test]
async fn a_node_that_is_removed_keeps_nobody_from_entering() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    let managers = try_join_all((0..6).map(|_| LockManager::connect(&url))).await.unwrap();
    for round in 0..40 {
        let key = format!("new{round}");
        let each = managers.iter().map(async |manager| {
            // It would repeat a request that fails, if it waited.
            let guard = loop {
                if let Some(guard) = manager.try_acquire(&key, LockOptions::new()).await? {
                    break guard;
                }
            };
            let token = guard.fencing_token();
            guard.release().await?;
            Ok::<_, lockattr::Error>(token)
        });
        let tokens: BTreeSet<_> = try_join_all(each).await.unwrap().into_iter().collect();
        assert_eq!(tokens.len(), managers.len());
    }
    let rest = async || ensemble.left_below(&chroot(&url)).await.len() <= 1;
    eventually("no node of a lock is left", rest).await;
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
    eventually("the servers or the store remove it", is_gone).await;
    for _ in 0..2 {
        // It would repeat a request that fails, if it waited.
        let held = manager.try_acquire("a", LockOptions::new()).await.unwrap().unwrap();
        assert_eq!(line(ensemble, &url, "a").await.len(), 1);
        held.release().await.unwrap();
    }
    nothing_is_left(ensemble, &url).await;
}

/// ZooKeeper numbers its transactions, and a fencing token is that number.
///
/// Red without: the node that is made and removed in the transaction of its entry.
#[tokio::test]
async fn a_lock_that_was_never_used_costs_two_transactions() {
    let ensemble = ZooKeeper::single().await;
    let manager = LockManager::connect(&ensemble.url()).await.unwrap();
    let mut tokens = Vec::new();
    for key in ["first", "a", "b", "c", "d", "e", "f"] {
        let held = manager.acquire(key, LockOptions::new()).await.unwrap();
        tokens.push(held.fencing_token().get());
        held.release().await.unwrap();
    }
    let transactions: Vec<_> = tokens.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // Sessions of the harness that end take some, too.
    let two = FencingToken::from_counter(2).get();
    assert_eq!(transactions.iter().min(), Some(&two), "{transactions:?}");
    let rest = async || ensemble.left_below(&chroot(&ensemble.url())).await.len() <= 1;
    eventually("no node of a lock is left", rest).await;
}

/// The entry below the node of another process is refused once, because it would make the node.
///
/// Red without: what the refusal says about the node.
#[tokio::test]
async fn a_lock_that_another_process_holds_costs_two_transactions() {
    let ensemble = ZooKeeper::single().await;
    let url = ensemble.url();
    let managers = try_join_all((0..2).map(|_| LockManager::connect(&url))).await.unwrap();
    let [one, other] = &managers[..] else { panic!("two") };
    let mut transactions = Vec::new();
    for key in ["a", "b", "c", "d", "e", "f"] {
        let held = one.acquire(key, LockOptions::new()).await.unwrap();
        let first = held.fencing_token().get();
        let ends = async {
            let queued = async || line(&ensemble, &url, key).await.len() == 2;
            eventually("the other is in the queue", queued).await;
            held.release().await.unwrap();
        };
        let (next, ()) = tokio::join!(other.acquire(key, LockOptions::new()), ends);
        let next = next.unwrap();
        transactions.push(next.fencing_token().get() - first);
        next.release().await.unwrap();
    }
    // One more is the session that looks into the queue. Others of the harness take some, too.
    let three = FencingToken::from_counter(3).get();
    assert!(transactions.iter().any(|&count| count <= three), "{transactions:?}");
    drop(managers);
    nothing_is_left(&ensemble, &url).await;
}

/// Some processes have made the nodes of some of the locks.
#[tokio::test]
async fn nodes_that_other_processes_have_made_are_entered() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    let managers = try_join_all((0..2).map(|_| LockManager::connect(&url))).await.unwrap();
    let (one, other) = (&managers[0], &managers[1]);
    let held = one.acquire_all(["a", "b"], LockOptions::new()).await.unwrap();
    let own = other.acquire("d", LockOptions::new()).await.unwrap();
    let all = other.acquire_all(["a", "b", "c", "d2"], LockOptions::new());
    let single = other.acquire("b", LockOptions::new());
    let ends = async {
        let queued = async || line(ensemble, &url, "b").await.len() == 3;
        eventually("both others are in the queue", queued).await;
        held.release().await.unwrap();
    };
    let release = |guard: lockattr::LockGuard| async move { guard.release().await.unwrap() };
    let ((), (), ()) = tokio::join!(
        async { release(all.await.unwrap()).await },
        async { release(single.await.unwrap()).await },
        ends
    );
    own.release().await.unwrap();
    nothing_is_left(ensemble, &url).await;
}
