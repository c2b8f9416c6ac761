//! Locks with several holders at once: shared locks and permits.

use lockattr::store::Sharing::{self, Permits, Shared};
use lockattr_tests::eventually;

use super::fleet::{Manager, Waiter};
use super::{AnyStore, SHORT, TTL};

fn all<const N: usize>(manager: &Manager, key: &str, sharing: Sharing) -> [Waiter; N] {
    [(); N].map(|()| manager.claim_shared(&[key], sharing))
}

pub(super) async fn sharers_hold_together_and_an_exclusive_holder_alone(store: AnyStore) {
    let manager = Manager::on(&store);
    let [one, two, three] = all(&manager, "shared", Shared);
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

pub(super) async fn an_exclusive_claim_is_not_overtaken_by_sharers(store: AnyStore) {
    let manager = Manager::on(&store);
    let [one, two, three, four, hasty] = all(&manager, "waits", Shared);
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

pub(super) async fn permits_are_counted(store: AnyStore) {
    let manager = Manager::on(&store);
    let [one, two, three, four] = all(&manager, "permits", Permits(2));
    let (more, fewer) = (
        manager.claim_shared(&["permits"], Permits(3)),
        manager.claim_shared(&["permits"], Permits(1)),
    );
    one.acquire().await;
    assert!(!fewer.try_acquire().await);
    two.acquire().await;
    assert!(one.try_acquire().await, "it has one already");
    assert!(!three.try_acquire().await);
    assert!(more.try_acquire().await, "by its own count one is left");
    more.release().await;
    three.enqueue().await;
    four.enqueue().await;
    two.release().await;
    three.wait_for_grant().await;
    assert!(!four.is_holder().await && one.is_holder().await);
    one.release().await;
    four.wait_for_grant().await;
    assert!(!two.try_acquire().await);
}

pub(super) async fn shared_locks_and_permits_do_not_mix(store: AnyStore) {
    let manager = Manager::on(&store);
    let [shared, other] = all(&manager, "mix", Shared);
    let [permit] = all(&manager, "mix", Permits(10));
    shared.acquire().await;
    assert!(!permit.try_acquire().await);
    shared.release().await;
    permit.acquire().await;
    assert!(!other.try_acquire().await);
    permit.release().await;
    assert!(other.try_acquire().await);
}

pub(super) async fn the_lease_of_each_sharer_ends_by_itself(store: AnyStore) {
    let manager = Manager::on(&store);
    let [long, short] = all(&manager, "leases", Permits(2));
    let [next] = all(&manager, "leases", Permits(2));
    long.acquire().await;
    let short = short.with_ttl(SHORT);
    short.acquire().await;
    eventually(TTL, "the short one ends", async || next.try_acquire().await).await;
    assert!(!short.is_holder().await);
    assert!(!short.release().await);
    assert!(long.is_holder().await && next.is_holder().await);
}

pub(super) async fn a_sharer_releases_only_its_own_lease(store: AnyStore) {
    let manager = Manager::on(&store);
    let [one, two] = all(&manager, "own", Shared);
    one.acquire().await;
    assert!(!two.is_holder().await && !two.release().await, "never acquired");
    two.acquire().await;
    assert!(one.release().await);
    assert!(!one.release().await && !one.is_holder().await);
    assert!(two.is_holder().await && two.release().await);
    assert_eq!(store.holder(one.claim.key()).await.unwrap(), None);
}
