//! The etcd lease that carries the locks of a store.

use lockattr::LostReason;
use lockattr::store::EtcdStore;
use lockattr_tests::{eventually, for_store, in_time};

use super::*;

#[tokio::test]
async fn a_session_that_is_revoked_by_hand_is_lost_at_once() {
    let etcd = Etcd::shared().await;
    assert_lost_with_its_session(etcd, |query| etcd.url_with(query), "").await;
}

/// Revokes the session of a holder for which another store waits. What is at these URLs puts
/// `namespace` before each key.
pub(super) async fn assert_lost_with_its_session(
    etcd: &Etcd,
    url_with: impl Fn(&str) -> String,
    namespace: &str,
) {
    // Renewals are a third of `ttl` apart. They and the heartbeats are too late to notice it first.
    let long = url_with("session_timeout=2h&ttl=1h&heartbeat=1h&response_timeout=1h");
    let (here, there) = (manager(&long).await, manager(&url_with("heartbeat=1h")).await);
    let held = here.acquire("revoked", LockOptions::new()).await.unwrap();
    let queue = format!("{namespace}lock:revoked/");
    let session = etcd.lease_of(&queue).await;
    let waits = tokio::spawn(async move { there.acquire("revoked", LockOptions::new()).await });
    eventually("queued", async || etcd.keys(&queue).await.len() == 2).await;
    etcd.ctl(&["lease", "revoke", &session]).await;
    in_time(held.lost()).await;
    let lockattr::Error::Lost { reason, .. } = held.ensure_held().unwrap_err() else { panic!() };
    assert_eq!(reason, LostReason::Taken);
    let next = in_time(waits).await.unwrap().unwrap();
    assert!(next.fencing_token() > held.fencing_token());
    next.release().await.unwrap();
    // A new session replaces the old one.
    here.acquire("revoked", LockOptions::new()).await.unwrap().release().await.unwrap();
    assert_eq!(etcd.keys(&queue).await, [""; 0]);
}

/// An election may extend an old session beyond the time that its store expects.
#[tokio::test]
async fn an_entry_of_an_earlier_session_is_not_taken_for_ours() {
    let etcd = Etcd::shared().await;
    let store = EtcdStore::open(&for_store(&etcd.url())).unwrap();
    let claim = claim("earlier");
    let granted = etcd.ctl(&["lease", "grant", "600"]).await;
    let earlier = granted.split(' ').nth(1).expect("lease ID granted").to_owned();
    let entry = format!("etcd:earlier/x-{}-{earlier}", claim.token());
    etcd.ctl(&["put", &format!("--lease={earlier}"), &entry, claim.value()]).await;
    let outcome = acquire(&store, &claim).await.unwrap();
    assert!(matches!(outcome, AcquireOutcome::Held { .. }), "{outcome:?}");
    etcd.ctl(&["lease", "revoke", &earlier]).await;
    let outcome = acquire(&store, &claim).await.unwrap();
    assert!(matches!(outcome, AcquireOutcome::Acquired { .. }), "{outcome:?}");
    assert_eq!(release(&store, &claim).await, Ok(ReleaseOutcome::Released));
    assert_eq!(etcd.keys("etcd:earlier/").await, [""; 0]);
}

/// Red without: keeping the lease alive.
#[tokio::test]
async fn a_lock_is_held_for_longer_than_a_session_lasts_by_itself() {
    let etcd = Etcd::shared().await;
    // It is proved every ten seconds.
    let url = etcd.url_with("session_timeout=40s&ttl=20s&heartbeat=1h&prefix=longer:");
    let here = manager(&url).await;
    let held = here.acquire("kept", LockOptions::new()).await.unwrap();
    let session = etcd.lease_of("longer:kept/").await;
    is_kept_alive(etcd, &session).await;
    held.ensure_held().unwrap();
    held.release().await.unwrap();
    assert_eq!(etcd.keys("longer:").await, [""; 0]);
}

/// A `ttl` that may outlast the session could not be guaranteed.
#[tokio::test]
async fn a_lease_longer_than_the_session_certainly_lives_is_refused() {
    let etcd = Etcd::shared().await;
    let manager = manager(&etcd.url_with("session_timeout=16m&prefix=long:")).await;
    manager.acquire("key", LockOptions::new().ttl(TTL)).await.unwrap().release().await.unwrap();
    let longer = LockOptions::new().ttl(TTL + Duration::from_millis(1));
    let refused = manager.acquire("key", longer).await;
    assert!(matches!(refused, Err(lockattr::Error::InvalidOptions(_))), "{refused:?}");
}
