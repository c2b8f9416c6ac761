//! Locks that stay held for a while after their release.

use std::time::Duration;

use lockattr::store::{ReleaseOutcome, ReleaseRequest};
use tokio::time::Instant;

use super::{LONGER, TTL};
use crate::eventually::eventually;
use crate::subject::{Subject, acquired, is_acquired};
use crate::waiter::Manager;

const AFTER: Duration = Duration::from_millis(500);

pub(crate) async fn a_lock_stays_locked_for_the_rest_of_its_time(store: Subject) {
    let (first, second) = (store.claim("rest"), store.claim("rest"));
    acquired(&store, &first, TTL).await;
    let started = Instant::now();
    let kept = [ReleaseRequest::new(first.clone()).after(AFTER)];
    let outcome = store.release(&kept).await.remove(0).expect("an answer");
    assert_eq!(outcome, ReleaseOutcome::Released);
    let next = async || is_acquired(&store, &second, TTL).await;
    eventually("the lock is free", next).await;
    // Stores may round to whole milliseconds.
    let waited = started.elapsed();
    assert!(waited + Duration::from_millis(2) >= AFTER, "it was free after {waited:?} already");
}

pub(crate) async fn a_lock_that_stays_locked_expires(store: Subject) {
    let manager = Manager::on(&store);
    let [first, second, hasty] = [(); 3].map(|()| manager.claim_for("stays"));
    first.acquire().await;
    assert!(second.enqueue().await > AFTER * 2);
    let started = Instant::now();
    assert!(first.release_after(AFTER).await);
    assert!(!hasty.try_acquire().await, "it stays locked, and then the other comes first");
    // The head of the queue learns it with its next request at the latest, unless it is over by then.
    let again = second.try_enqueue().await.unwrap_or_default();
    let is_told = again <= AFTER + Duration::from_millis(2) || started.elapsed() >= AFTER;
    assert!(is_told, "it is to ask again after {again:?}");
    // The waiter is granted the lock when it or another caller asks next.
    eventually("it ends", async || second.try_acquire().await).await;
    // Stores may round to whole milliseconds.
    let waited = started.elapsed();
    assert!(waited + Duration::from_millis(2) >= AFTER, "after {waited:?}");
    assert!(!first.release().await, "it is another's");
    assert!(second.is_holder().await);
}

pub(crate) async fn a_lock_may_stay_locked_for_longer_than_its_lease(store: Subject) {
    let manager = Manager::on(&store);
    let first = manager.claim_for("longer");
    first.acquire().await;
    assert!(first.release_after(LONGER).await);
    // A quorum shows a new lease a moment later.
    let longer = async || {
        let holder = store.holder(first.claim.key()).await.unwrap().expect("still locked");
        holder.remaining.is_some_and(|left| left > TTL && left <= LONGER)
    };
    eventually("it stays locked for longer", longer).await;
}

pub(crate) async fn a_lock_that_is_not_held_does_not_stay_locked(store: Subject) {
    let manager = Manager::on(&store);
    let [first, second] = [(); 2].map(|()| manager.claim_for("unheld"));
    assert!(!first.release_after(LONGER).await);
    assert_eq!(store.holder(first.claim.key()).await.unwrap(), None);
    second.acquire().await;
    assert!(!first.release_after(LONGER).await);
    let holder = store.holder(first.claim.key()).await.unwrap().expect("the other's");
    assert!(holder.remaining.is_some_and(|left| left <= TTL), "the other's lease was changed");
}
