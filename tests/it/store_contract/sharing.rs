//! Locks with several holders at once: shared locks and permits.

use lockattr::store::Sharing::{self, Permits, Shared};
use lockattr_tests::eventually;

use super::fleet::{Manager, Waiter};
use super::{AnyStore, SHORT, TTL};

fn all<const N: usize>(manager: &Manager, key: &str, sharing: Sharing) -> [Waiter; N] {
    [(); N].map(|()| manager.shares(&[key], sharing))
}

pub(super) async fn sharers_hold_together_and_an_exclusive_holder_alone(store: AnyStore) {
    let manager = Manager::on(&store);
    let [one, two, three] = all(&manager, "shared", Shared);
    let alone = manager.wants("shared");
    one.gets().await;
    assert!(two.asks_once().await);
    assert!(!alone.asks_once().await);
    let holder = store.holder(alone.claim.key()).await.unwrap().expect("held");
    assert_eq!(holder.service.as_deref(), Some("a contract"));
    assert!(holder.remaining.is_some_and(|left| left <= TTL && left > TTL / 2));
    one.releases().await;
    assert!(!alone.asks_once().await, "the other still shares it");
    two.releases().await;
    assert!(alone.asks_once().await);
    assert!(!three.asks_once().await);
    alone.releases().await;
    assert!(three.asks_once().await);
}

pub(super) async fn an_exclusive_claim_is_not_overtaken_by_sharers(store: AnyStore) {
    let manager = Manager::on(&store);
    let [one, two, three, four, hasty] = all(&manager, "waits", Shared);
    let alone = manager.wants("waits");
    one.gets().await;
    two.gets().await;
    alone.stands().await;
    three.stands().await;
    four.stands().await;
    assert!(!hasty.asks_once().await);
    one.releases().await;
    assert!(!alone.holds().await && !three.holds().await);
    two.releases().await;
    assert!(alone.granted().await.contended);
    assert!(!three.holds().await && !four.holds().await);
    alone.releases().await;
    // Both are granted at once.
    three.granted().await;
    assert!(!four.granted().await.contended);
    assert!(three.holds().await);
}

pub(super) async fn permits_are_counted(store: AnyStore) {
    let manager = Manager::on(&store);
    let [one, two, three, four] = all(&manager, "permits", Permits(2));
    let (more, fewer) =
        (manager.shares(&["permits"], Permits(3)), manager.shares(&["permits"], Permits(1)));
    one.gets().await;
    assert!(!fewer.asks_once().await);
    two.gets().await;
    assert!(one.asks_once().await, "it has one already");
    assert!(!three.asks_once().await);
    assert!(more.asks_once().await, "by its own count one is left");
    more.releases().await;
    three.stands().await;
    four.stands().await;
    two.releases().await;
    three.granted().await;
    assert!(!four.holds().await && one.holds().await);
    one.releases().await;
    four.granted().await;
    assert!(!two.asks_once().await);
}

pub(super) async fn shared_locks_and_permits_do_not_mix(store: AnyStore) {
    let manager = Manager::on(&store);
    let [shared, other] = all(&manager, "mix", Shared);
    let [permit] = all(&manager, "mix", Permits(10));
    shared.gets().await;
    assert!(!permit.asks_once().await);
    shared.releases().await;
    permit.gets().await;
    assert!(!other.asks_once().await);
    permit.releases().await;
    assert!(other.asks_once().await);
}

pub(super) async fn the_lease_of_each_sharer_ends_by_itself(store: AnyStore) {
    let manager = Manager::on(&store);
    let [long, short] = all(&manager, "leases", Permits(2));
    let [next] = all(&manager, "leases", Permits(2));
    long.gets().await;
    let short = short.for_so_long(SHORT);
    short.gets().await;
    eventually(TTL, "the short one ends", async || next.asks_once().await).await;
    assert!(!short.holds().await);
    assert!(!short.releases().await);
    assert!(long.holds().await && next.holds().await);
}

pub(super) async fn a_sharer_releases_only_its_own_lease(store: AnyStore) {
    let manager = Manager::on(&store);
    let [one, two] = all(&manager, "own", Shared);
    one.gets().await;
    assert!(!two.holds().await && !two.releases().await, "never acquired");
    two.gets().await;
    assert!(one.releases().await);
    assert!(!one.releases().await && !one.holds().await);
    assert!(two.holds().await && two.releases().await);
    assert_eq!(store.holder(one.claim.key()).await.unwrap(), None);
}
