//! Releasing a lock by force, as an operator does.

use lockattr::store::ReleaseOutcome::{NotHeld, Released};
use lockattr::store::RenewOutcome;
use lockattr::store::Sharing::{Exclusive, Shared};

use super::TTL;
use crate::eventually::eventually;
use crate::subject::{Subject, acquired, force_release, is_acquired, release, renew, seen};
use crate::waiter::Manager;

pub(crate) async fn a_force_released_lock_is_lost_to_its_holder(store: Subject) {
    let (first, second) = (store.claim("by force"), store.claim("by force"));
    let fencing = acquired(&store, &first, TTL).await;
    assert!(force_release(&store, first.key()).await, "it was held");
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
    assert!(force_release(&store, &store.key("evicted")).await);
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

pub(crate) async fn a_lock_is_taken_only_from_the_holder_that_was_seen(store: Subject) {
    let [first, second, third] = [(); 3].map(|()| store.claim("seen"));
    let taken_from =
        async |holder| store.force_release(first.key(), &holder).await.expect("an answer");
    // Where a lock belongs to a connection, the id is that of the connection.
    let there = store.another_node();
    acquired(&there, &first, TTL).await;
    let before = seen(&store, first.key()).await;
    assert_eq!(release(&there, &first).await, Released);
    assert!(!taken_from(before).await, "the lock is free");
    acquired(&store, &second, TTL).await;
    assert!(!taken_from(before).await, "another claim has it by now");
    let renewed = renew(&store, &second, TTL).await;
    assert_eq!(renewed, RenewOutcome::Renewed, "it was taken from the next holder");
    let holder = seen(&store, first.key()).await;
    assert_ne!(holder, before, "two claims have one id");
    assert!(taken_from(holder).await, "it was held");
    let is_free = async || store.holder(first.key()).await.unwrap().is_none();
    eventually("it is free", is_free).await;
    assert!(!taken_from(holder).await, "once");
    assert_eq!(release(&store, &second).await, NotHeld);
    acquired(&store, &third, TTL).await;
    release(&store, &third).await;
}

pub(crate) async fn of_several_holders_only_the_one_that_was_seen_loses_the_lock(store: Subject) {
    let manager = Manager::on(&store);
    let [one, two] = ["all"; 2].map(|key| manager.claim_shared(&[key], Shared));
    let alone = manager.claim_for("all");
    let (fencing, _) = one.acquire().await;
    two.acquire().await;
    alone.enqueue().await;
    assert!(force_release(&store, &store.key("all")).await);
    let holds = [one.is_holder().await, two.is_holder().await];
    assert_ne!(holds[0], holds[1], "one of them loses it");
    assert!(force_release(&store, &store.key("all")).await, "the other one has it");
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
    assert!(force_release(&store, &store.key("x")).await);
    x.wait_for_grant().await;
    assert!(!both.is_holder().await, "it is notified");
    both.release().await;
    assert!(x.is_holder().await, "what went to another stays with it");
    let is_free = async || y.try_acquire().await;
    eventually("the other is free too", is_free).await;
    x.release().await;
    y.release().await;
}
