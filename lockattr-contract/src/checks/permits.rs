//! Permits: a fixed number of holders at once.

use lockattr::store::Sharing::{self, Permits, Shared};

use crate::eventually::eventually;
use crate::subject::{Subject, acquired_briefly};
use crate::waiter::{Manager, Waiter};

fn all<const N: usize>(manager: &Manager, key: &str, sharing: Sharing) -> [Waiter; N] {
    [(); N].map(|()| manager.claim_shared(&[key], sharing))
}

pub(crate) async fn permits_are_counted(store: Subject) {
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
    two.release().await;
    assert!(three.try_acquire().await, "one is free");
    assert!(!four.try_acquire().await && one.is_holder().await);
}

pub(crate) async fn a_released_permit_goes_to_the_first_waiter(store: Subject) {
    let manager = Manager::on(&store);
    let [one, two, three, four] = all(&manager, "permits", Permits(2));
    one.acquire().await;
    two.acquire().await;
    three.enqueue().await;
    four.enqueue().await;
    two.release().await;
    three.wait_for_grant().await;
    assert!(!four.is_holder().await && one.is_holder().await);
    one.release().await;
    four.wait_for_grant().await;
    assert!(!two.try_acquire().await);
}

pub(crate) async fn shared_locks_and_permits_do_not_mix(store: Subject) {
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

pub(crate) async fn the_lease_of_each_sharer_ends_by_itself(store: Subject) {
    let manager = Manager::on(&store);
    let [long, short] = all(&manager, "leases", Permits(2));
    let [next] = all(&manager, "leases", Permits(2));
    long.acquire().await;
    acquired_briefly(&store, &short.claim).await;
    eventually("the short one ends", async || next.try_acquire().await).await;
    assert!(!short.is_holder().await);
    assert!(!short.release().await);
    assert!(long.is_holder().await && next.is_holder().await);
}

/// Also after hand-offs inside a process, so that a hand-off costs no round trip.
pub(crate) async fn a_permit_is_handed_on_under_a_number_of_its_own(store: Subject) {
    let manager = Manager::on(&store);
    let [one, two] = all(&manager, "numbers", Permits(2));
    let (first, _) = one.acquire().await;
    let given = store.next_token(one.claim.key()).await.expect("an answer");
    let (last, _) = two.acquire().await;
    assert!(last > first, "{last:?} after {first:?}");
    if let Some(given) = given {
        assert!(first < given && given < last, "{given:?} between {first:?} and {last:?}");
    }
}
