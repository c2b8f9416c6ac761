//! Locks that stay held for a while after their release.

use std::time::Duration;

use lockattr_tests::eventually;
use tokio::time::Instant;

use super::fleet::Manager;
use super::{AnyStore, LONGER, TTL};

const AFTER: Duration = Duration::from_millis(500);

pub(super) async fn a_lock_that_stays_locked_expires(store: AnyStore) {
    let manager = Manager::on(&store);
    let [first, second, hasty] = [(); 3].map(|()| manager.wants("stays"));
    first.gets().await;
    assert!(second.stands().await > AFTER * 2);
    let asked = Instant::now();
    assert!(first.releases_after(AFTER).await);
    assert!(!hasty.asks_once().await);
    // The head of the queue learns it with its next request at the latest.
    let again = second.stands().await;
    assert!(again <= AFTER + Duration::from_millis(2), "it is to ask again after {again:?}");
    // The waiter is granted the lock when it or another caller asks next.
    eventually(TTL, "it ends", async || second.asks_once().await).await;
    // Stores may round to whole milliseconds.
    let waited = asked.elapsed();
    assert!(waited + Duration::from_millis(2) >= AFTER, "after {waited:?}");
    assert!(!first.releases().await, "it is another's");
    assert!(second.holds().await);
}

pub(super) async fn a_lock_may_stay_locked_for_longer_than_its_lease(store: AnyStore) {
    let manager = Manager::on(&store);
    let first = manager.wants("longer");
    first.gets().await;
    assert!(first.releases_after(LONGER).await);
    let holder = store.holder(first.claim.key()).await.unwrap().expect("still locked");
    assert!(holder.remaining.is_some_and(|left| left > TTL && left <= LONGER));
}

pub(super) async fn a_lock_that_is_not_held_does_not_stay_locked(store: AnyStore) {
    let manager = Manager::on(&store);
    let [first, second] = [(); 2].map(|()| manager.wants("unheld"));
    assert!(!first.releases_after(LONGER).await);
    assert_eq!(store.holder(first.claim.key()).await.unwrap(), None);
    second.gets().await;
    assert!(!first.releases_after(LONGER).await);
    let holder = store.holder(first.claim.key()).await.unwrap().expect("the other's");
    assert!(holder.remaining.is_some_and(|left| left <= TTL), "the other's lease was changed");
}
