//! Claims for several keys: all of them or none.

use std::time::Duration;

use lockattr::store::Sharing::{Exclusive, Shared};
use lockattr::store::{LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome, RenewRequest};
use tokio::time::{Instant, sleep};

use super::asked::key;
use super::fleet::{Manager, Waiter};
use super::{AnyStore, LONGER, TTL};

/// How long other claims may overtake a claim for several keys.
const OVERTAKEN: Duration = Duration::from_secs(1);

fn together(manager: &Manager, keys: &[&str]) -> Waiter {
    manager.shares(keys, Exclusive)
}

pub(super) async fn several_keys_are_acquired_together_or_not_at_all(store: AnyStore) {
    let manager = Manager::on(&store);
    let all = together(&manager, &["a", "b", "c"]);
    let [a, b, c] = ["a", "b", "c"].map(|key| manager.wants(key));
    b.gets().await;
    assert!(!all.asks_once().await);
    for free in ["a", "c"] {
        assert_eq!(store.holder(&key(free)).await.unwrap(), None, "{free} was locked");
    }
    b.releases().await;
    assert!(all.asks_once().await);
    for one in [&a, &b, &c] {
        assert!(!one.asks_once().await);
    }
    assert!(all.releases().await);
    for one in [&a, &b, &c] {
        assert!(one.asks_once().await);
    }
}

pub(super) async fn several_keys_are_renewed_and_released_as_one(store: AnyStore) {
    let manager = Manager::on(&store);
    // The order of the keys does not matter, and duplicates count once.
    let all = together(&manager, &["b", "a", "b"]);
    assert!(all.claim.keys().iter().map(LockKey::as_str).eq(["a", "b"]));
    all.gets().await;
    let longer = [RenewRequest::new(all.claim.clone(), LONGER)];
    assert_eq!(store.renew(&longer).await.remove(0).unwrap(), RenewOutcome::Renewed);
    for held in ["a", "b"] {
        let holder = store.holder(&key(held)).await.unwrap().expect("held");
        assert!(holder.remaining.is_some_and(|left| left > TTL), "{held} was not renewed");
    }
    assert!(all.releases_after(TTL / 2).await);
    for held in ["a", "b"] {
        let holder = store.holder(&key(held)).await.unwrap().expect("still locked");
        assert!(holder.remaining.is_some_and(|left| left <= TTL / 2), "{held}");
    }
    all.releases().await;
    assert!(!all.holds().await && !all.releases().await);
    for held in ["a", "b"] {
        assert_eq!(store.holder(&key(held)).await.unwrap(), None);
    }
}

pub(super) async fn the_same_keys_in_another_order_take_turns(store: AnyStore) {
    let manager = Manager::on(&store);
    let one = together(&manager, &["a", "b"]);
    let other = together(&manager, &["b", "a"]);
    let mut last = one.gets().await.0;
    for _ in 0..5 {
        other.stands().await;
        one.releases().await;
        let next = other.granted().await.fencing;
        assert!(next > last);
        one.stands().await;
        other.releases().await;
        last = one.granted().await.fencing;
        assert!(last > next);
    }
}

pub(super) async fn a_claim_for_several_keys_is_overtaken_while_another_key_is_held(
    store: AnyStore,
) {
    let manager = Manager::on(&store);
    // Retry if this machine took longer than a claim may be overtaken.
    for n in 0..20 {
        let (a, b) = (format!("{n}:a"), format!("{n}:b"));
        let (holds_a, holds_b) = (manager.wants(&a), manager.wants(&b));
        let (both, single, hasty) =
            (together(&manager, &[&a, &b]), manager.wants(&a), manager.wants(&a));
        holds_a.gets().await;
        holds_b.gets().await;
        let began = Instant::now();
        both.stands().await;
        single.stands().await;
        holds_a.releases().await;
        if began.elapsed() >= OVERTAKEN {
            continue;
        }
        single.granted().await;
        assert!(!both.holds().await);
        // But it gets both as soon as both are free.
        holds_b.releases().await;
        assert!(!both.holds().await);
        single.releases().await;
        both.granted().await;
        assert!(!hasty.asks_once().await);
        return;
    }
    panic!("this machine is too slow to tell");
}

pub(super) async fn a_claim_for_several_keys_is_not_overtaken_forever(store: AnyStore) {
    let manager = Manager::on(&store);
    let (holds_a, holds_b) = (manager.wants("a"), manager.wants("b"));
    let (both, single, hasty) =
        (together(&manager, &["a", "b"]), manager.wants("a"), manager.wants("a"));
    holds_a.gets().await;
    holds_b.gets().await;
    both.stands().await;
    sleep(OVERTAKEN + OVERTAKEN / 10).await;
    single.stands().await;
    holds_a.releases().await;
    assert!(!single.holds().await && !both.holds().await);
    assert!(!hasty.asks_once().await);
    assert_eq!(store.holder(&key("a")).await.unwrap(), None, "it stays reserved");
    holds_b.releases().await;
    both.granted().await;
    assert!(!single.holds().await);
    both.releases().await;
    single.granted().await;
}

pub(super) async fn several_keys_are_shared(store: AnyStore) {
    let manager = Manager::on(&store);
    let one = manager.shares(&["a", "b"], Shared);
    let other = manager.shares(&["b", "c"], Shared);
    let (alone, all) = (manager.wants("b"), together(&manager, &["a", "b", "c"]));
    one.gets().await;
    other.gets().await;
    assert!(!alone.asks_once().await && !all.asks_once().await);
    one.releases().await;
    assert!(!alone.asks_once().await && other.holds().await);
    all.stands().await;
    other.releases().await;
    all.granted().await;
    assert!(!alone.asks_once().await);
}

pub(super) async fn batches_with_several_keys_answer_one_by_one(store: AnyStore) {
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
            claim.gets().await;
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
