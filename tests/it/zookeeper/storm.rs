//! Thousands of tasks at once, each with a lock of its own.

use futures_util::future::{join_all, try_join_all};
use lockattr::{Error, LockGuard};
use lockattr_tests::{Engine, with_query};

use super::*;

/// A tenth of the response timeout that the servers need for all of it.
const IMPATIENT: &str = "ttl=3s&session_timeout=8s&response_timeout=300ms";

/// The whole run takes several leases and many response timeouts.
const TASKS: usize = 3000;

/// The bound on the requests under way and the silence that counts from the last answer also have
/// tests of their own (`sequenced::tests`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_tasks_lose_no_lease_and_fail_no_release() {
    let ensemble = ZooKeeper::start().await;
    let url = ensemble.url();
    storm(&with_query(&url, IMPATIENT)).await;
    // Long before the servers themselves would remove so many.
    let nothing = async || ensemble.left_below(&chroot(&url)).await.len() < TASKS / 100;
    eventually("the nodes of the locks are gone too", nothing).await;
}

/// Tasks that acquire and release locks of their own, while others are held and renewed.
pub(crate) async fn storm(url: &str) {
    let manager = LockManager::connect(url).await.unwrap();
    let held: Vec<_> =
        (0..20).map(|n| manager.acquire(format!("held{n}"), LockOptions::new())).collect();
    let held: Vec<LockGuard> = try_join_all(held).await.unwrap();
    let task = |n: usize| {
        let manager = manager.clone();
        tokio::spawn(async move {
            let options = LockOptions::new().wait(Duration::from_secs(30));
            let guard = manager.acquire(format!("own{n}"), options).await?;
            guard.release().await
        })
    };
    let outcomes = join_all((0..TASKS).map(task)).await;
    let failed: Vec<Error> = outcomes.into_iter().filter_map(|it| it.unwrap().err()).collect();
    let lost: Vec<_> = held.iter().filter_map(|guard| guard.ensure_held().err()).collect();
    assert!(
        failed.is_empty() && lost.is_empty(),
        "{} failed, as {:?}; {} lost, as {:?}",
        failed.len(),
        failed.first(),
        lost.len(),
        lost.first(),
    );
    for guard in held {
        guard.release().await.unwrap();
    }
}
