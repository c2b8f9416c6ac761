//! Claims for many keys: each entry names all of them, and servers limit the size of a request.

use super::*;
use lockattr_tests::for_store;

/// Returns `n` names of twenty bytes.
fn names(n: usize) -> Vec<String> {
    (0..n).map(|nth| format!("a-name-of-twenty-{nth:03}")).collect()
}

#[tokio::test]
async fn a_claim_too_large_for_the_servers_is_refused_and_the_connection_kept() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    let manager = LockManager::connect(&url).await.unwrap();
    let held = manager.acquire("held", LockOptions::new()).await.unwrap();
    let error = manager.acquire_all(&names(250), LockOptions::new()).await.unwrap_err();
    assert!(matches!(error, lockattr::Error::InvalidOptions(_)), "{error}");
    assert!(error.to_string().contains("250 keys"), "{error}");
    held.ensure_held().unwrap();
    held.release().await.unwrap();
    drop(manager);
    nothing_is_left(ensemble, &url).await;
}

/// Its renewals and releases are accepted too.
#[tokio::test]
async fn the_largest_claim_that_is_not_refused_is_acquired_and_renewed() {
    let ensemble = ZooKeeper::shared().await;
    let url = ensemble.url_apart();
    let store = ZookeeperStore::open(&for_store(&url)).unwrap();
    let subscriber = Arc::new(Subscriber::new(|_| {}));
    let of = |n: usize| {
        let mut keys = names(n).into_iter().map(|name| LockKey::new("lock:", &name).unwrap());
        let first = keys.next().expect("one");
        Arc::new(Claim::of(&subscriber, first, keys, Sharing::Exclusive, "service=test"))
    };
    let most = (1..400).rev().find(|n| store.refuses_claim(&of(*n)).is_none()).expect("some");
    assert!((100..250).contains(&most), "{most}");
    let claim = of(most);
    assert!(asks(&store, &claim).await);
    assert!(holds(&store, &claim).await);
    assert!(releases(&store, &claim).await);
    drop(store);
    nothing_is_left(ensemble, &url).await;
}
