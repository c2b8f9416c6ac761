//! Shared locks: several holders at once.

use lockattr::store::Sharing::Shared;

use super::TTL;
use crate::subject::Subject;
use crate::waiter::{Manager, Waiter};

fn sharers<const N: usize>(manager: &Manager, key: &str) -> [Waiter; N] {
    [(); N].map(|()| manager.claim_shared(&[key], Shared))
}

pub(crate) async fn sharers_hold_together_and_an_exclusive_holder_alone(store: Subject) {
    let manager = Manager::on(&store);
    let [one, two, three] = sharers(&manager, "shared");
    let alone = manager.claim_for("shared");
    one.acquire().await;
    assert!(two.try_acquire().await);
    assert!(!alone.try_acquire().await);
    let holder = store.holder(alone.claim.key()).await.unwrap().expect("held");
    assert_eq!(holder.service.as_deref(), Some("a contract"));
    assert!(holder.remaining.is_some_and(|left| left <= TTL && left > TTL / 2));
    one.release().await;
    assert!(!alone.try_acquire().await, "the other still shares it");
    two.release().await;
    assert!(alone.try_acquire().await);
    assert!(!three.try_acquire().await);
    alone.release().await;
    assert!(three.try_acquire().await);
}

pub(crate) async fn an_exclusive_claim_is_not_overtaken_by_sharers(store: Subject) {
    let manager = Manager::on(&store);
    let [one, two, three, four, hasty] = sharers(&manager, "waits");
    let alone = manager.claim_for("waits");
    one.acquire().await;
    two.acquire().await;
    alone.enqueue().await;
    three.enqueue().await;
    four.enqueue().await;
    assert!(!hasty.try_acquire().await);
    one.release().await;
    assert!(!alone.is_holder().await && !three.is_holder().await);
    two.release().await;
    assert!(alone.wait_for_grant().await.contended);
    assert!(!three.is_holder().await && !four.is_holder().await);
    alone.release().await;
    // Both are granted at once.
    three.wait_for_grant().await;
    assert!(!four.wait_for_grant().await.contended);
    assert!(three.is_holder().await);
}

pub(crate) async fn a_sharer_releases_only_its_own_lease(store: Subject) {
    let manager = Manager::on(&store);
    let [one, two] = sharers(&manager, "own");
    one.acquire().await;
    assert!(!two.is_holder().await && !two.release().await, "never acquired");
    two.acquire().await;
    assert!(one.release().await);
    assert!(!one.release().await && !one.is_holder().await);
    assert!(two.is_holder().await && two.release().await);
    assert_eq!(store.holder(one.claim.key()).await.unwrap(), None);
}
