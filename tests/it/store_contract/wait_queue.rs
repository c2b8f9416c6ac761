//! The wait queue: the order of grants, the notifications, and the entries that leave it.

use lockattr_tests::eventually;

use super::asked::key;
use super::fleet::{Fleet, Manager};
use super::{AnyStore, MEANWHILE, TTL};

pub(super) async fn queued_claims_are_granted_in_the_order_of_their_arrival(store: AnyStore) {
    let first = Manager::on(&store);
    let first = first.wants("order");
    assert!(!first.gets().await.1, "no claim waits");
    let managers: Vec<_> = (0..5).map(|_| Manager::on(&store)).collect();
    // Two claims of one manager are two waiters.
    let waiters: Vec<_> = managers.iter().chain(&managers).map(|it| it.wants("order")).collect();
    for waiter in &waiters {
        let again = waiter.stands().await;
        assert!(again <= TTL && !again.is_zero(), "{again:?}");
    }
    assert!(first.releases().await);
    for (n, waiter) in waiters.iter().enumerate() {
        let grant = waiter.granted().await;
        assert_eq!(grant.contended, n < 9, "the {n}th");
        for other in &waiters[n + 1..] {
            assert!(!other.holds().await, "two at once");
        }
        assert!(waiter.releases().await);
    }
    assert_eq!(store.holder(first.claim.key()).await.unwrap(), None);
}

pub(super) async fn a_queued_claim_that_asks_again_keeps_its_place(store: AnyStore) {
    let manager = Manager::on(&store);
    let [first, second, third] = [(); 3].map(|()| manager.wants("place"));
    first.gets().await;
    second.stands().await;
    third.stands().await;
    for _ in 0..3 {
        second.stands().await;
    }
    first.releases().await;
    second.granted().await;
    assert!(!third.holds().await);
    // One release is enough, however often the claim asked.
    second.releases().await;
    third.granted().await;
    third.releases().await;
    assert_eq!(store.holder(first.claim.key()).await.unwrap(), None);
}

/// A claim whose notification came late asks again: its lease begins anew.
pub(super) async fn a_granted_claim_that_asks_again_still_has_the_lock(store: AnyStore) {
    let manager = Manager::on(&store);
    let [first, second, third] = [(); 3].map(|()| manager.wants("again"));
    first.gets().await;
    second.stands().await;
    third.stands().await;
    first.releases().await;
    let grant = second.granted().await;
    let (fencing, contended) = second.gets().await;
    assert!(fencing >= grant.fencing && contended);
    assert!(!third.holds().await);
}

pub(super) async fn a_claim_that_is_released_leaves_the_queue(store: AnyStore) {
    let manager = Manager::on(&store);
    let [first, second, third, last] = [(); 4].map(|()| manager.wants("leaves"));
    first.gets().await;
    second.stands().await;
    third.stands().await;
    assert!(!second.releases().await, "it held nothing");
    assert!(first.holds().await, "and released nothing");
    first.releases().await;
    third.granted().await;
    assert!(!second.holds().await);
    // No queue is kept for waiters that have left.
    second.stands().await;
    second.releases().await;
    third.releases().await;
    assert!(last.asks_once().await);
}

/// The lock is free because its lease has expired, and no process has noticed yet.
pub(super) async fn a_caller_that_asks_only_once_does_not_overtake_the_queue(store: AnyStore) {
    let manager = Manager::on(&store);
    let [first, second, hasty] = [(); 3].map(|()| manager.wants("hasty"));
    let first = first.for_so_long(MEANWHILE);
    first.gets().await;
    assert!(second.stands().await <= MEANWHILE * 2, "it may ask again when that lease has ended");
    // The lock is free, or the next waiter already holds it with a longer lease.
    let over = async || {
        let holder = store.holder(first.claim.key()).await.unwrap();
        holder.is_none_or(|holder| holder.remaining.is_some_and(|left| left > MEANWHILE))
    };
    eventually(TTL, "the lease is over", over).await;
    assert!(!hasty.asks_once().await);
    second.granted().await;
    second.releases().await;
    assert!(hasty.asks_once().await);
}

pub(super) async fn a_holder_learns_that_others_wait(store: AnyStore) {
    let (holder, other) = (Manager::on(&store), Manager::on(&store));
    let first = holder.wants("wanted");
    // `gets` asks as a waiter, so the store knows where to send the notification.
    first.gets().await;
    other.wants("wanted").stands().await;
    let told = async || holder.contended().contains(&key("wanted").name().to_owned());
    eventually(TTL, "the holder is notified", told).await;
    assert!(other.contended().is_empty());
}

pub(super) async fn fencing_tokens_grow_over_grants_too(store: AnyStore) {
    let (here, there) = (Manager::on(&store), Manager::on(&store));
    let mut holder = here.wants("numbers");
    let mut last = holder.gets().await.0;
    for n in 0..50 {
        let next = if n % 2 == 0 { &there } else { &here }.wants("numbers");
        next.stands().await;
        holder.releases().await;
        let grant = next.granted().await;
        assert!(grant.fencing > last, "{:?} after {last:?}", grant.fencing);
        (holder, last) = (next, grant.fencing);
    }
    holder.releases().await;
    assert!(here.wants("numbers").gets().await.0 > last);
}

pub(super) async fn claims_of_a_manager_that_is_gone_are_passed_over(fleet: impl Fleet) {
    let (here, there) = (fleet.node(), fleet.node());
    let (manager, dead) = (Manager::on(&here), Manager::on(&there));
    let [first, last] = [(); 2].map(|()| manager.wants("gone"));
    first.gets().await;
    let subscriber = dead.subscriber.id();
    for _ in 0..3 {
        dead.wants("gone").stands().await;
    }
    last.stands().await;
    drop((dead, there));
    fleet.knows_it_is_gone(subscriber).await;
    first.releases().await;
    last.granted().await;
}
