//! Claims for several keys: all of them or none.

use std::time::Duration;

use lockattr::store::Sharing::{Exclusive, Shared};
use lockattr::store::{LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome, RenewRequest};
use tokio::time::sleep;

use super::{LONGER, TTL};
use crate::subject::Subject;
use crate::waiter::{Manager, Waiter};

/// How long other claims may overtake a claim for several keys.
pub(super) const OVERTAKEN: Duration = Duration::from_secs(1);

pub(super) fn together(manager: &Manager, keys: &[&str]) -> Waiter {
    manager.claim_shared(keys, Exclusive)
}

pub(crate) async fn several_keys_are_acquired_together_or_not_at_all(store: Subject) {
    let manager = Manager::on(&store);
    let all = together(&manager, &["a", "b", "c"]);
    let [a, b, c] = ["a", "b", "c"].map(|key| manager.claim_for(key));
    b.acquire().await;
    assert!(!all.try_acquire().await);
    for free in ["a", "c"] {
        assert_eq!(store.holder(&store.key(free)).await.unwrap(), None, "{free} was locked");
    }
    b.release().await;
    assert!(all.try_acquire().await);
    for one in [&a, &b, &c] {
        assert!(!one.try_acquire().await);
    }
    assert!(all.release().await);
    for one in [&a, &b, &c] {
        assert!(one.try_acquire().await);
    }
}

pub(crate) async fn several_keys_are_renewed_and_released_as_one(store: Subject) {
    let manager = Manager::on(&store);
    // The order of the keys does not matter, and duplicates count once.
    let all = together(&manager, &["b", "a", "b"]);
    assert!(all.claim.keys().iter().map(LockKey::as_str).eq(["a", "b"]));
    all.acquire().await;
    let longer = [RenewRequest::new(all.claim.clone(), LONGER)];
    assert_eq!(store.renew(&longer).await.remove(0).unwrap(), RenewOutcome::Renewed);
    for held in ["a", "b"] {
        let holder = store.holder(&store.key(held)).await.unwrap().expect("held");
        assert!(holder.remaining.is_some_and(|left| left > TTL), "{held} was not renewed");
    }
    assert!(all.release_after(TTL / 2).await);
    for held in ["a", "b"] {
        let holder = store.holder(&store.key(held)).await.unwrap().expect("still locked");
        assert!(holder.remaining.is_some_and(|left| left <= TTL / 2), "{held}");
    }
    all.release().await;
    assert!(!all.is_holder().await && !all.release().await);
    for held in ["a", "b"] {
        assert_eq!(store.holder(&store.key(held)).await.unwrap(), None);
    }
}

pub(crate) async fn the_same_keys_in_another_order_take_turns(store: Subject) {
    let manager = Manager::on(&store);
    let one = together(&manager, &["a", "b"]);
    let other = together(&manager, &["b", "a"]);
    let mut last = one.acquire().await.0;
    for _ in 0..5 {
        other.enqueue().await;
        one.release().await;
        let next = other.wait_for_grant().await.fencing;
        assert!(next > last);
        one.enqueue().await;
        other.release().await;
        last = one.wait_for_grant().await.fencing;
        assert!(last > next);
    }
}

pub(crate) async fn a_claim_for_several_keys_is_not_overtaken_forever(store: Subject) {
    let manager = Manager::on(&store);
    let (holder_a, holder_b) = (manager.claim_for("a"), manager.claim_for("b"));
    let (both, single, hasty) =
        (together(&manager, &["a", "b"]), manager.claim_for("a"), manager.claim_for("a"));
    holder_a.acquire().await;
    holder_b.acquire().await;
    both.enqueue().await;
    sleep(OVERTAKEN + OVERTAKEN / 10).await;
    single.enqueue().await;
    holder_a.release().await;
    assert!(!single.is_holder().await && !both.is_holder().await);
    assert!(!hasty.try_acquire().await);
    assert_eq!(store.holder(&store.key("a")).await.unwrap(), None, "it stays reserved");
    holder_b.release().await;
    both.wait_for_grant().await;
    assert!(!single.is_holder().await);
    both.release().await;
    single.wait_for_grant().await;
}

pub(crate) async fn several_keys_are_shared(store: Subject) {
    let manager = Manager::on(&store);
    let one = manager.claim_shared(&["a", "b"], Shared);
    let other = manager.claim_shared(&["b", "c"], Shared);
    let (alone, all) = (manager.claim_for("b"), together(&manager, &["a", "b", "c"]));
    one.acquire().await;
    other.acquire().await;
    assert!(!alone.try_acquire().await && !all.try_acquire().await);
    one.release().await;
    assert!(!alone.try_acquire().await && other.is_holder().await);
    all.enqueue().await;
    other.release().await;
    all.wait_for_grant().await;
    assert!(!alone.try_acquire().await);
}

pub(crate) async fn batches_with_several_keys_answer_one_by_one(store: Subject) {
    let manager = Manager::on(&store);
    // One, two or three keys per claim. Every fourth claim does not hold its keys.
    let claims: Vec<_> = (0..240)
        .map(|n| {
            let keys: Vec<_> = (0..=n % 3).map(|key| format!("batch:{n}:{key}")).collect();
            together(&manager, &keys.iter().map(String::as_str).collect::<Vec<_>>())
        })
        .collect();
    let ours = |n: usize| !n.is_multiple_of(4);
    for (n, claim) in claims.iter().enumerate() {
        if ours(n) {
            claim.acquire().await;
        }
    }
    let renewals = claims.iter().map(|it| RenewRequest::new(it.claim.clone(), LONGER));
    let renewed = store.renew(&renewals.collect::<Vec<_>>()).await;
    // Every fifth lock stays held after its release.
    let after = |n: usize| if n.is_multiple_of(5) { TTL } else { Duration::ZERO };
    let releases = claims.iter().enumerate();
    let releases = releases.map(|(n, it)| ReleaseRequest::new(it.claim.clone()).after(after(n)));
    let released = store.release(&releases.collect::<Vec<_>>()).await;
    assert_eq!((renewed.len(), released.len()), (240, 240));
    for (n, claim) in claims.iter().enumerate() {
        assert_eq!(*renewed[n].as_ref().unwrap() == RenewOutcome::Renewed, ours(n), "renewal {n}");
        assert_eq!(
            *released[n].as_ref().unwrap() == ReleaseOutcome::Released,
            ours(n),
            "release {n}"
        );
        for key in claim.claim.keys() {
            let taken = store.holder(key).await.unwrap().is_some();
            assert_eq!(taken, ours(n) && n.is_multiple_of(5), "{key} of {n}");
        }
    }
}
