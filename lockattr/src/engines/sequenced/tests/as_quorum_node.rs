//! This layer as a node of a quorum.

use super::*;
use crate::FencingToken;
use crate::store::{AnyStore, MemoryStore, RedlockStore};

/// Servers that number entries by themselves skip no number because another store gave it.
#[tokio::test(start_paused = true)]
async fn a_number_beyond_its_own_is_not_promised() {
    let here = Fixture::new();
    let claim = here.claim(&["a"]);
    let outcome = here.acquire(&claim).await.unwrap();
    let AcquireOutcome::Acquired { fencing, .. } = outcome else { panic!("{outcome:?}") };
    let renew = async |fence| {
        let renewal = RenewRequest::new(claim.clone(), TTL).fenced(fence);
        here.store.renew(&[renewal]).await.remove(0)
    };
    assert_eq!(renew(fencing).await.unwrap(), RenewOutcome::Renewed);
    renew(FencingToken::from_counter(fencing.counter() + 1)).await.unwrap_err();
    assert_eq!(here.renew(&claim).await.unwrap(), RenewOutcome::Renewed);
    assert_eq!(here.release(&claim).await.unwrap(), ReleaseOutcome::Released);
    here.assert_nothing_left();
}

#[tokio::test(start_paused = true)]
async fn a_quorum_takes_no_longer_lease_than_each_of_its_stores() {
    let here = Fixture::new();
    let memory = || AnyStore::new(MemoryStore::new());
    let quorum = RedlockStore::new([memory(), here.store.clone().into(), memory()]).unwrap();
    assert_eq!(quorum.longest_ttl(), here.store.longest_ttl());
    let quorum = RedlockStore::new([memory(), memory(), memory()]).unwrap();
    assert_eq!(quorum.longest_ttl(), Duration::MAX);
}
