//! What a store does that leaves an ability out: it refuses, and does not pretend.

use lockattr::store::Sharing::{Exclusive, Permits, Shared};
use lockattr::store::{AcquireOutcome, AcquireRequest, Claim, ReleaseOutcome, Waiting};

use super::TTL;
use crate::subject::{Subject, acquired, release, seen};
use crate::waiter::{Manager, Waiter};

/// A store that is asked for what it does not have must not lock something else.
fn is_refused(store: &Subject, waiter: &Waiter, kind: &str) {
    let why = store.refuses_claim(&waiter.claim);
    let why = why.unwrap_or_else(|| panic!("`refuses_claim` accepts a claim for {kind}"));
    assert!(!why.is_empty(), "`refuses_claim` gives no reason");
    let plain = Manager::on(store).claim_for("plain");
    assert_eq!(store.refuses_claim(&plain.claim), None, "an exclusive claim for one key");
}

pub(crate) async fn a_store_without_wait_queues_queues_no_claim(store: Subject) {
    let manager = Manager::on(&store);
    let (holder, next) = (store.claim("busy"), store.claim("busy"));
    let waiter = manager.claim_for("busy");
    acquired(&store, &holder, TTL).await;
    let request = AcquireRequest::new(waiter.claim.clone(), TTL).waiting(Waiting::Queued);
    let answer = store.acquire(&request).await.expect("an answer");
    let AcquireOutcome::Held { queued, .. } = answer else { panic!("granted twice") };
    assert_eq!(queued, None, "nothing will notify the claim, so it must ask again by itself");
    release(&store, &holder).await;
    // No entry of a queue keeps others from the lock.
    acquired(&store, &next, TTL).await;
    assert!(!waiter.is_holder().await);
}

pub(crate) async fn a_store_without_shared_locks_refuses_them(store: Subject) {
    is_refused(&store, &Manager::on(&store).claim_shared(&["a"], Shared), "a shared lock");
}

pub(crate) async fn a_store_without_permits_refuses_them(store: Subject) {
    is_refused(&store, &Manager::on(&store).claim_shared(&["a"], Permits(2)), "a permit");
}

pub(crate) async fn a_store_of_single_keys_refuses_several(store: Subject) {
    is_refused(&store, &Manager::on(&store).claim_shared(&["a", "b"], Exclusive), "several keys");
}

pub(crate) async fn a_store_that_cannot_list_says_so(store: Subject) {
    let held = store.claim("unlisted");
    acquired(&store, &held, TTL).await;
    let listed = store.held_locks(store.prefix()).await;
    let refused = listed.expect_err("an error: a list without the held lock would mislead");
    assert!(!refused.to_string().is_empty());
}

pub(crate) async fn a_store_that_cannot_take_locks_says_so(store: Subject) {
    let held = store.claim("kept");
    acquired(&store, &held, TTL).await;
    let id = seen(&store, held.key()).await;
    let refused =
        store.force_release(held.key(), &id).await.expect_err("an error: it was not taken");
    assert!(!refused.to_string().is_empty());
    let holder = store.holder(held.key()).await.expect("an answer");
    assert!(holder.is_some(), "the lock was taken all the same");
}

pub(crate) async fn a_store_that_keeps_no_key_done_says_so(store: Subject) {
    let why = store.refuses_done().expect("`refuses_done` gives no reason");
    assert!(!why.is_empty(), "`refuses_done` gives no reason");
    let held = store.claim("undone");
    acquired(&store, &held, TTL).await;
    let refused = store.mark_done(&held, TTL * 2).await.expect_err("an error: it is not done");
    assert!(!refused.to_string().is_empty());
    let holder = store.holder(held.key()).await.expect("an answer").expect("it was released");
    assert!(!holder.done, "the key was marked all the same");
    assert_eq!(release(&store, &held).await, ReleaseOutcome::Released, "it is the claim's still");
}

pub(crate) async fn a_store_without_companions_promises_none(store: Subject) {
    assert!(!store.supports_companions(), "`supports_companions` is `true`");
}

pub(crate) async fn a_store_without_downgrades_promises_none(store: Subject) {
    assert!(!store.supports_downgrade(), "`supports_downgrade` is `true`");
    let claim = Claim::new(store.key("any"), "");
    assert_eq!(claim.sharing(), Exclusive);
}
