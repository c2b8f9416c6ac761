//! Keys that stay done for a period after the work on them.

use std::time::Duration;

use lockattr::Holder;
use lockattr::store::Sharing::Exclusive;
use lockattr::store::{
    AcquireOutcome, AcquireRequest, AnyStore, Claim, ReleaseOutcome, RenewOutcome,
};
use tokio::time::Instant;

use super::{LONGER, TTL};
use crate::eventually::eventually;
use crate::subject::{Subject, acquired, force_release, is_acquired, release, renew, seen};
use crate::waiter::Manager;

/// A period that ends while the check runs.
const BRIEF: Duration = Duration::from_millis(500);

async fn mark(store: &AnyStore, claim: &Claim, lasts: Duration) -> ReleaseOutcome {
    store.mark_done(claim, lasts).await.expect("an answer")
}

/// Returns the holder of the key, which is done.
async fn done(store: &AnyStore, claim: &Claim) -> Holder {
    let holder = store.holder(claim.key()).await.expect("an answer").expect("it is not held");
    assert!(holder.done, "the key is not done: {holder:?}");
    holder
}

pub(crate) async fn a_done_key_stays_held_for_its_period(store: Subject) {
    assert_eq!(store.refuses_done(), None, "`refuses_done` gives a reason");
    let (first, second) = (store.claim("done"), store.claim("done"));
    let there = store.another_node();
    acquired(&there, &first, TTL).await;
    assert_eq!(mark(&there, &first, LONGER).await, ReleaseOutcome::Released);
    // It outlives the process that marked it.
    drop(there);
    let holder = done(&store, &first).await;
    assert!(holder.remaining.is_some_and(|left| left > TTL && left <= LONGER), "{holder:?}");
    let answer = store.acquire(&AcquireRequest::new(second, TTL)).await.expect("an answer");
    let AcquireOutcome::Held { holder: Some(holder), .. } = answer else {
        panic!("a done key was granted: {answer:?}");
    };
    assert!(holder.done, "the refused claim does not learn that the key is done: {holder:?}");
    assert_eq!(holder.service.as_deref(), Some("a contract"), "and by which service");
    assert_eq!(holder.function.as_deref(), Some("suite::test"), "and by which function");
}

pub(crate) async fn a_key_can_be_marked_again_by_its_own_claim(store: Subject) {
    let claim = store.claim("again");
    acquired(&store, &claim, TTL).await;
    assert_eq!(mark(&store, &claim, LONGER).await, ReleaseOutcome::Released);
    for _ in 0..2 {
        assert_eq!(mark(&store, &claim, LONGER * 2).await, ReleaseOutcome::Released);
    }
    let left = done(&store, &claim).await.remaining;
    assert!(left.is_some_and(|left| left > TTL && left <= LONGER), "it began again: {left:?}");
}

pub(crate) async fn a_done_key_is_no_longer_its_claims(store: Subject) {
    let claim = store.claim("late");
    acquired(&store, &claim, TTL).await;
    assert_eq!(mark(&store, &claim, LONGER).await, ReleaseOutcome::Released);
    let renewed = renew(&store, &claim, LONGER * 2).await;
    assert_eq!(renewed, RenewOutcome::NotHeld, "its claim renewed it");
    assert!(!is_acquired(&store, &claim, LONGER * 2).await, "its claim acquired it again");
    let released = release(&store, &claim).await;
    assert_eq!(released, ReleaseOutcome::NotHeld, "its claim released it");
    let left = done(&store, &claim).await.remaining;
    assert!(left.is_some_and(|left| left > TTL && left <= LONGER), "its end changed: {left:?}");
}

pub(crate) async fn a_mark_compares_the_owner_token(store: Subject) {
    let (first, second) = (store.claim("other"), store.claim("other"));
    let not_held = ReleaseOutcome::NotHeld;
    assert_eq!(mark(&store, &first, LONGER).await, not_held, "never acquired");
    assert_eq!(store.holder(first.key()).await.unwrap(), None, "it locked a free key");
    acquired(&store, &first, TTL).await;
    release(&store, &first).await;
    assert_eq!(mark(&store, &first, LONGER).await, not_held, "released");
    acquired(&store, &second, TTL).await;
    assert_eq!(mark(&store, &first, LONGER).await, not_held, "another's");
    let holder = store.holder(first.key()).await.unwrap().expect("the other's");
    assert!(!holder.done && holder.remaining.is_some_and(|left| left <= TTL), "{holder:?}");
    assert_eq!(mark(&store, &second, LONGER).await, ReleaseOutcome::Released);
    assert_eq!(mark(&store, &first, LONGER * 2).await, not_held, "another's mark");
    let left = done(&store, &second).await.remaining;
    assert!(left.is_some_and(|left| left <= LONGER), "another claim changed it: {left:?}");
}

pub(crate) async fn a_done_key_is_free_after_its_period(store: Subject) {
    let (first, second) = (store.claim("brief"), store.claim("brief"));
    let fencing = acquired(&store, &first, TTL).await;
    let started = Instant::now();
    assert_eq!(mark(&store, &first, BRIEF).await, ReleaseOutcome::Released);
    let next = async || is_acquired(&store, &second, TTL).await;
    eventually("the key is free", next).await;
    // Stores may round to whole milliseconds.
    let waited = started.elapsed();
    assert!(waited + Duration::from_millis(2) >= BRIEF, "it was free after {waited:?} already");
    let again = acquired(&store, &second, TTL).await;
    assert!(again > fencing, "{again:?} after {fencing:?}");
    assert_eq!(mark(&store, &first, LONGER).await, ReleaseOutcome::NotHeld, "its period is over");
    assert_eq!(renew(&store, &second, TTL).await, RenewOutcome::Renewed);
}

pub(crate) async fn waiters_of_a_done_key_ask_again_at_once(store: Subject) {
    let managers: Vec<_> = (0..3).map(|_| Manager::on(&store)).collect();
    let holder = managers[0].claim_for("waiters");
    holder.acquire().await;
    // Two claims of one manager are two waiters.
    let waiters: Vec<_> =
        managers.iter().chain(&managers).map(|it| it.claim_for("waiters")).collect();
    for waiter in &waiters {
        waiter.enqueue().await;
    }
    assert_eq!(mark(&store, &holder.claim, LONGER).await, ReleaseOutcome::Released);
    for (n, waiter) in waiters.iter().enumerate() {
        let at = waiter.next_ask_again().await;
        assert!(at <= Instant::now(), "the {n}th waiter is to ask only in {:?}", at.elapsed());
        // One server of several may notify it before the others know the mark.
        let learns = async || waiter.holder_in_the_way().await.is_some_and(|holder| holder.done);
        eventually("the waiter learns that the key is done", learns).await;
    }
    for waiter in &waiters {
        assert!(!waiter.release().await, "it leaves the queue, and held nothing");
    }
    done(&store, &holder.claim).await;
}

pub(crate) async fn a_waiter_for_several_keys_asks_again_too(store: Subject) {
    let manager = Manager::on(&store);
    let holder = manager.claim_for("one of two");
    holder.acquire().await;
    let both = manager.claim_shared(&["one of two", "the other"], Exclusive);
    both.enqueue().await;
    assert_eq!(mark(&store, &holder.claim, LONGER).await, ReleaseOutcome::Released);
    let at = both.next_ask_again().await;
    assert!(at <= Instant::now(), "the waiter is to ask only later");
    let learns = async || both.holder_in_the_way().await.is_some_and(|holder| holder.done);
    eventually("the waiter learns that the key is done", learns).await;
    assert!(!both.release().await, "it held nothing");
}

pub(crate) async fn a_done_key_is_listed_as_done(store: Subject) {
    let (ours, other) = (store.claim("listed"), store.claim("only held"));
    acquired(&store, &ours, TTL).await;
    acquired(&store, &other, TTL).await;
    assert_eq!(mark(&store, &ours, LONGER).await, ReleaseOutcome::Released);
    let mut listed = store.held_locks(store.prefix()).await.expect("an answer");
    listed.sort_by(|one, other| one.key.cmp(&other.key));
    let shown: Vec<_> = listed.iter().map(|held| (held.key.as_str(), held.holder.done)).collect();
    assert_eq!(shown, [("listed", true), ("only held", false)]);
    let left = listed[0].holder.remaining;
    assert!(left.is_some_and(|left| left > TTL && left <= LONGER), "{left:?}");
}

pub(crate) async fn a_forced_release_reopens_a_done_key(store: Subject) {
    let (first, second) = (store.claim("reopened"), store.claim("reopened"));
    let fencing = acquired(&store, &first, TTL).await;
    let at_work = seen(&store, first.key()).await;
    assert_eq!(mark(&store, &first, LONGER).await, ReleaseOutcome::Released);
    let reopened = store.force_release(first.key(), &at_work).await.expect("an answer");
    assert!(!reopened, "the holder that was seen has done its work by now");
    done(&store, &first).await;
    assert!(force_release(&store, first.key()).await, "it was done");
    let next = acquired(&store, &second, TTL).await;
    assert!(next > fencing, "{next:?} after {fencing:?}");
    assert_eq!(mark(&store, &first, LONGER).await, ReleaseOutcome::NotHeld, "its mark is gone");
    let holder = store.holder(second.key()).await.unwrap().expect("held");
    assert!(!holder.done, "{holder:?}");
}

pub(crate) async fn a_reopened_key_goes_to_the_next_in_the_queue(store: Subject) {
    let manager = Manager::on(&store);
    let [first, second] = [(); 2].map(|()| manager.claim_for("next"));
    let (fencing, _) = first.acquire().await;
    assert_eq!(mark(&store, &first.claim, LONGER).await, ReleaseOutcome::Released);
    second.enqueue().await;
    assert!(force_release(&store, &store.key("next")).await);
    let grant = second.wait_for_grant().await;
    assert!(grant.fencing > fencing, "{:?} after {fencing:?}", grant.fencing);
    let holder = store.holder(second.claim.key()).await.unwrap().expect("held");
    assert!(!holder.done, "{holder:?}");
    assert!(second.release().await);
}
