//! A store that is gone leaves nothing behind.

use lockattr_tests::eventually;

use super::*;

#[tokio::test]
async fn a_store_that_is_gone_leaves_no_key_and_no_lease() {
    let etcd = Etcd::single().await;
    let here = manager(&etcd.url()).await;
    assert_eq!(etcd.leases().await, [""; 0], "no earlier event is needed");
    here.acquire("left", LockOptions::new()).await.unwrap().release().await.unwrap();
    assert_eq!(etcd.leases().await.len(), 1, "one for all its locks");
    drop(here);
    let nothing = async || etcd.leases().await.is_empty() && etcd.keys("").await.is_empty();
    eventually("the session is revoked", nothing).await;
}

#[test]
fn a_session_outlives_the_runtime_that_opened_it() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let etcd = second.block_on(Etcd::single());
    // Nothing but a heartbeat keeps the session alive.
    let here = first.block_on(manager(&etcd.url_with("heartbeat=1s")));
    let held = first.block_on(here.acquire("outlives", LockOptions::new())).unwrap();
    drop(first);
    second.block_on(async {
        let other = here.acquire("another", LockOptions::new()).await.unwrap();
        let session = etcd.lease_of("lock:another/").await;
        is_kept_alive(&etcd, &session).await;
        other.ensure_held().unwrap();
        assert_eq!(etcd.leases().await.len(), 1, "the same session");
        other.release().await.unwrap();
        drop(held);
        here.shutdown().await;
        assert_eq!(etcd.left().await, [""; 0]);
    });
}

/// More locks than fit into one reply.
///
/// Red without: the next page in `Core::queues`.
#[tokio::test]
async fn more_locks_than_a_page_has_are_listed() {
    let etcd = Etcd::single().await;
    let here = manager(&etcd.url()).await;
    let mut guards = Vec::new();
    for many in (0..1_100).collect::<Vec<u32>>().chunks(100) {
        let asked = many.iter().map(|n| here.acquire(format!("k{n:04}"), LockOptions::new()));
        guards.extend(futures_util::future::try_join_all(asked).await.unwrap());
    }
    let held = here.held_locks().await.unwrap();
    let keys: Vec<_> = guards.iter().map(|guard| guard.key().to_owned()).collect();
    assert_eq!(held.iter().map(|held| held.key.clone()).collect::<Vec<_>>(), keys);
    for (held, guard) in held.iter().zip(&guards) {
        assert_eq!(held.fencing_token, Some(guard.fencing_token()));
    }
    drop(guards);
    let nothing = async || here.held_locks().await.unwrap().is_empty();
    eventually("all are released", nothing).await;
}
