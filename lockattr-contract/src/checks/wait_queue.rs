//! The wait queue: the order of grants, the notifications, and the entries that leave it.

use std::time::Duration;

use lockattr::store::{AcquireOutcome, AcquireRequest};
use tokio::time::Instant;

use super::TTL;
use crate::eventually::eventually;
use crate::subject::Subject;
use crate::waiter::{ANY, Manager};

pub(crate) async fn queued_claims_are_granted_in_the_order_of_their_arrival(store: Subject) {
    let first = Manager::on(&store);
    let first = first.claim_for("order");
    assert!(!first.acquire().await.1, "no claim waits");
    let managers: Vec<_> = (0..5).map(|_| Manager::on(&store)).collect();
    // Two claims of one manager are two waiters.
    let waiters: Vec<_> =
        managers.iter().chain(&managers).map(|it| it.claim_for("order")).collect();
    for waiter in &waiters {
        let again = waiter.enqueue().await;
        assert!(again <= TTL && !again.is_zero(), "{again:?}");
    }
    assert!(first.release().await);
    for (n, waiter) in waiters.iter().enumerate() {
        let grant = waiter.wait_for_grant().await;
        assert_eq!(grant.contended, n < 9, "the {n}th");
        // All entries end unless their claims ask again: this must not take long.
        if let Some(next) = waiters.get(n + 1) {
            assert!(!next.is_holder().await, "two at once");
        }
        assert!(waiter.release().await);
    }
    assert_eq!(store.holder(first.claim.key()).await.unwrap(), None);
}

pub(crate) async fn a_queued_claim_that_asks_again_keeps_its_place(store: Subject) {
    let manager = Manager::on(&store);
    let [first, second, third] = [(); 3].map(|()| manager.claim_for("place"));
    first.acquire().await;
    second.enqueue().await;
    third.enqueue().await;
    for _ in 0..3 {
        second.enqueue().await;
    }
    first.release().await;
    second.wait_for_grant().await;
    assert!(!third.is_holder().await);
    // One release is enough, however often the claim asked.
    second.release().await;
    third.wait_for_grant().await;
    third.release().await;
    assert_eq!(store.holder(first.claim.key()).await.unwrap(), None);
}

/// A claim whose notification came late asks again: its lease begins anew.
pub(crate) async fn a_granted_claim_that_asks_again_still_has_the_lock(store: Subject) {
    let manager = Manager::on(&store);
    let [first, second, third] = [(); 3].map(|()| manager.claim_for("again"));
    first.acquire().await;
    second.enqueue().await;
    third.enqueue().await;
    first.release().await;
    let grant = second.wait_for_grant().await;
    let (fencing, contended) = second.acquire().await;
    assert!(fencing >= grant.fencing && contended);
    assert!(!third.is_holder().await);
}

pub(crate) async fn a_claim_that_is_released_leaves_the_queue(store: Subject) {
    let manager = Manager::on(&store);
    let [first, second, third, last] = [(); 4].map(|()| manager.claim_for("leaves"));
    first.acquire().await;
    second.enqueue().await;
    third.enqueue().await;
    assert!(!second.release().await, "it held nothing");
    assert!(first.is_holder().await, "and released nothing");
    first.release().await;
    third.wait_for_grant().await;
    assert!(!second.is_holder().await);
    // No queue is kept for waiters that have left.
    second.enqueue().await;
    second.release().await;
    third.release().await;
    // A server that keeps the queue itself may grant the lock to a waiter that is just leaving, for a moment.
    eventually("no waiter that has left is served", async || last.try_acquire().await).await;
}

/// The lock is free because its lease has expired, and no process has noticed yet.
pub(crate) async fn a_caller_that_asks_only_once_does_not_overtake_the_queue(store: Subject) {
    let manager = Manager::on(&store);
    // On a busy machine the lease may be over before the second claim asks. Then it has to be longer.
    let mut lease = Duration::from_millis(200);
    let [first, second, hasty] = loop {
        lease *= 2;
        let claims = [(); 3].map(|()| manager.claim_for(&format!("hasty {lease:?}")));
        let [first, second, hasty] = claims;
        let request = AcquireRequest::new(first.claim.clone(), lease);
        let Ok(AcquireOutcome::Acquired { .. }) = store.acquire(&request).await else { continue };
        if let Some(again) = second.try_enqueue().await {
            assert!(again <= lease * 2, "it may ask again when that lease has ended");
            break [first, second, hasty];
        }
    };
    // The lock is free, or the next waiter already holds it with a longer lease.
    let over = async || {
        let holder = store.holder(first.claim.key()).await.unwrap();
        holder.is_none_or(|holder| holder.remaining.is_some_and(|left| left > lease))
    };
    eventually("the lease is over", over).await;
    assert!(!hasty.try_acquire().await);
    second.wait_for_grant().await;
    second.release().await;
    assert!(hasty.try_acquire().await);
}

/// As a manager asks for that hands its locks to its own callers.
pub(crate) async fn a_holder_learns_that_others_wait(store: Subject) {
    let (holder, other) = (Manager::on(&store), Manager::on(&store));
    let learns = async |named: &str, reports: &[&str]| {
        let first = holder.claim_for(named);
        first.acquire().await;
        store.watch_for_waiters(&first.claim, Instant::now() + TTL);
        other.claim_for(named).enqueue().await;
        let name = store.key(named).name().to_owned();
        let notified = async || {
            let contended = holder.contended();
            contended.contains(&name) || reports.iter().any(|&any| contended.contains(&any.into()))
        };
        eventually("the holder is notified", notified).await;
        assert!(!other.contended().contains(&name));
    };
    // A store that begins to report waiters does not know which of them came before.
    learns("wanted", &[ANY]).await;
    learns("wanted, too", &[]).await;
}

pub(crate) async fn fencing_tokens_grow_over_grants_too(store: Subject) {
    let (here, there) = (Manager::on(&store), Manager::on(&store));
    let mut holder = here.claim_for("numbers");
    let mut last = holder.acquire().await.0;
    for n in 0..50 {
        let next = if n % 2 == 0 { &there } else { &here }.claim_for("numbers");
        next.enqueue().await;
        holder.release().await;
        let grant = next.wait_for_grant().await;
        assert!(grant.fencing > last, "{:?} after {last:?}", grant.fencing);
        (holder, last) = (next, grant.fencing);
    }
    holder.release().await;
    assert!(here.claim_for("numbers").acquire().await.0 > last);
}

pub(crate) async fn claims_of_a_manager_that_is_gone_are_passed_over(here: Subject) {
    let there = here.another_node();
    let (manager, dead) = (Manager::on(&here), Manager::on(&there));
    let [first, last] = [(); 2].map(|()| manager.claim_for("gone"));
    first.acquire().await;
    let subscriber = dead.subscriber.id();
    for _ in 0..3 {
        dead.claim_for("gone").enqueue().await;
    }
    last.enqueue().await;
    drop((dead, there));
    here.wait_until_gone(subscriber).await;
    first.release().await;
    last.wait_for_grant().await;
}
