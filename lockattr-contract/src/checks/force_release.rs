//! Releasing a lock by force, as an operator does.

use lockattr::store::ReleaseOutcome::NotHeld;
use lockattr::store::RenewOutcome;
use lockattr::store::Sharing::{Exclusive, Shared};

use super::TTL;
use crate::eventually::eventually;
use crate::subject::{Subject, acquired, is_acquired, release, renew};
use crate::waiter::Manager;

pub(crate) async fn a_force_released_lock_is_lost_to_its_holder(store: Subject) {
    let (first, second) = (store.claim("by force"), store.claim("by force"));
    let fencing = acquired(&store, &first, TTL).await;
    assert!(store.force_release(first.key()).await.expect("an answer"), "it was held");
    let next = acquired(&store, &second, TTL).await;
    assert!(next > fencing, "{next:?} after {fencing:?}");
    let renewed = renew(&store, &first, TTL).await;
    assert_eq!(renewed, RenewOutcome::NotHeld, "the former holder renewed what it lost");
    let released = release(&store, &first).await;
    assert_eq!(released, NotHeld, "the former holder released what it lost");
    let other = store.claim("by force");
    assert!(!is_acquired(&store, &other, TTL).await, "it freed the lock of the next holder");
}

pub(crate) async fn a_force_released_lock_goes_to_the_next_in_the_queue(store: Subject) {
    let manager = Manager::on(&store);
    let [holder, first, second] = [(); 3].map(|()| manager.claim_for("evicted"));
    let (fencing, _) = holder.acquire().await;
    first.enqueue().await;
    second.enqueue().await;
    assert!(store.force_release(&store.key("evicted")).await.unwrap());
    let grant = first.wait_for_grant().await;
    assert!(grant.fencing > fencing, "the next holder has a greater token");
    assert!(!holder.is_holder().await, "it is notified");
    assert!(!holder.release().await, "it cannot release what it lost");
    assert!(first.is_holder().await && !second.is_holder().await);
    assert!(first.release().await);
    second.wait_for_grant().await;
    assert!(second.release().await);
    assert_eq!(store.holder(&store.key("evicted")).await.unwrap(), None);
}

pub(crate) async fn force_release_of_a_free_lock_does_nothing(store: Subject) {
    assert!(!store.force_release(&store.key("free")).await.unwrap());
    let first = store.claim("free");
    acquired(&store, &first, TTL).await;
    assert!(store.force_release(first.key()).await.unwrap());
    let is_free = async || store.holder(first.key()).await.unwrap().is_none();
    eventually("it is free", is_free).await;
    assert!(!store.force_release(first.key()).await.unwrap(), "once");
    release(&store, &first).await;
    let next = store.claim("free");
    acquired(&store, &next, TTL).await;
    release(&store, &next).await;
}

pub(crate) async fn force_release_of_a_shared_lock_ends_all_sharers(store: Subject) {
    let manager = Manager::on(&store);
    let [one, two] = ["all"; 2].map(|key| manager.claim_shared(&[key], Shared));
    let alone = manager.claim_for("all");
    let (fencing, _) = one.acquire().await;
    two.acquire().await;
    alone.enqueue().await;
    assert!(store.force_release(&store.key("all")).await.unwrap());
    assert!(alone.wait_for_grant().await.fencing > fencing);
    assert!(!one.is_holder().await && !two.is_holder().await);
    assert!(!one.release().await && !two.release().await);
    assert!(alone.is_holder().await);
    assert!(alone.release().await);
}

pub(crate) async fn a_claim_for_several_keys_loses_all_with_one(store: Subject) {
    let manager = Manager::on(&store);
    let both = manager.claim_shared(&["x", "y"], Exclusive);
    let (x, y) = (manager.claim_for("x"), manager.claim_for("y"));
    both.acquire().await;
    x.enqueue().await;
    assert!(store.force_release(&store.key("x")).await.unwrap());
    x.wait_for_grant().await;
    assert!(!both.is_holder().await, "it is notified");
    both.release().await;
    assert!(x.is_holder().await, "what went to another stays with it");
    let is_free = async || y.try_acquire().await;
    eventually("the other is free too", is_free).await;
    x.release().await;
    y.release().await;
}
