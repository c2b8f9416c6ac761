//! What a store does for a claim that needs the locks of several stores at once: it notifies the
//! claim when to ask again, counts from the claim's hint, and releases without notification what
//! failed.

use lockattr::FencingToken;
use lockattr::store::{AcquireOutcome, AcquireRequest, ReleaseRequest, RenewOutcome, RenewRequest};
use tokio::time::{Instant, timeout};

use super::{SHORT, TTL};
use crate::subject::{Subject, acquired, release};
use crate::waiter::{Manager, Waiter};

/// A counter in the year 2100, ahead of any clock.
const LATER: u64 = 2_400_000_000_000_000;

pub(crate) async fn a_notified_claim_acquires_the_lock(store: Subject) {
    let (here, there) = (Manager::on(&store), Manager::on(&store));
    let (holder, waiter) = (here.claim_for("told"), there.claim_for("told").notified_only());
    holder.acquire().await;
    waiter.enqueue().await;
    assert_eq!(here.contended(), [store.key("told").name()]);
    assert!(holder.release().await);
    assert!(waiter.next_ask_again().await <= Instant::now());
    assert_eq!(store.holder(waiter.claim.key()).await.unwrap(), None, "it was not granted");
    assert!(!waiter.acquire().await.1, "no other claim waits");
    assert!(waiter.release().await);
}

pub(crate) async fn a_notified_claim_acquires_the_free_lock_past_other_waiters(store: Subject) {
    let manager = Manager::on(&store);
    let holder = manager.claim_for("barge");
    let (first, second) = (manager.claim_for("barge").notified_only(), manager.claim_for("barge"));
    holder.acquire().await;
    first.enqueue().await;
    second.enqueue().await;
    holder.release().await;
    first.next_ask_again().await;
    assert!(!second.is_holder().await, "it is the turn of the first");
    assert!(first.acquire().await.1, "the second is queued");
    first.release().await;
    second.wait_for_grant().await;
    second.release().await;
}

pub(crate) async fn a_later_claim_does_not_overtake_a_notified_one(store: Subject) {
    let manager = Manager::on(&store);
    let [holder, first, second, later] =
        [(); 4].map(|()| manager.claim_for("later").notified_only());
    holder.acquire().await;
    first.enqueue().await;
    second.enqueue().await;
    holder.release().await;
    first.next_ask_again().await;
    // It is the first waiter's turn, and the second one stays queued.
    later.enqueue().await;
    first.acquire().await;
    first.release().await;
    second.wait_for_grant().await;
    second.release().await;
    later.wait_for_grant().await;
    later.release().await;
}

pub(crate) async fn a_queued_claim_is_granted_the_lock_without_a_request(store: Subject) {
    let manager = Manager::on(&store);
    let (holder, waiter) = (manager.claim_for("unasked"), manager.claim_for("unasked"));
    let (first, _) = holder.acquire().await;
    waiter.enqueue().await;
    holder.release().await;
    assert!(waiter.next_grant().await.fencing > first);
    assert!(waiter.release().await);
}

/// A claim that acquired the lock must not leave its queue entry behind.
pub(crate) async fn a_claim_that_acquires_before_its_notification_has_left_the_queue(
    store: Subject,
) {
    let manager = Manager::on(&store);
    let (holder, waiter) = (manager.claim_for("early"), manager.claim_for("early"));
    let waiter = waiter.notified_only();
    holder.acquire().await;
    waiter.enqueue().await;
    release_quietly(&store, &holder).await;
    assert!(!waiter.acquire().await.1, "no other claim waits");
    waiter.release().await;
    assert!(!manager.claim_for("early").acquire().await.1, "its queue entry was left behind");
}

async fn release_quietly(store: &Subject, waiter: &Waiter) {
    let quietly = [ReleaseRequest::new(waiter.claim.clone()).without_notification()];
    store.release(&quietly).await.remove(0).unwrap();
}

pub(crate) async fn one_claim_at_a_time_is_notified(store: Subject) {
    let manager = Manager::on(&store);
    let (holder, first, second) = (
        manager.claim_for("one"),
        manager.claim_for("one").notified_only(),
        manager.claim_for("one").notified_only(),
    );
    holder.acquire().await;
    first.enqueue().await;
    second.enqueue().await;
    holder.release().await;
    first.next_ask_again().await;
    let second_notified = second.next_ask_again();
    assert!(timeout(SHORT, second_notified).await.is_err(), "both were notified");
    // When the first waiter gives up, the next one is notified.
    first.release().await;
    second.next_ask_again().await;
    second.acquire().await;
    second.release().await;
}

pub(crate) async fn a_quiet_release_notifies_no_claim_and_keeps_the_place(store: Subject) {
    let manager = Manager::on(&store);
    let (holder, waiter) = (manager.claim_for("quiet"), manager.claim_for("quiet").notified_only());
    holder.acquire().await;
    waiter.enqueue().await;
    release_quietly(&store, &holder).await;
    let notified = waiter.next_ask_again();
    assert!(timeout(SHORT, notified).await.is_err(), "it was notified");
    assert_eq!(store.holder(holder.claim.key()).await.unwrap(), None);

    // The next caller finds the lock free, but the queued waiter comes first.
    let other = manager.claim_for("quiet");
    assert!(!other.try_acquire().await, "it overtook the queue");
    waiter.next_ask_again().await;

    // A queued waiter that releases without notification stays queued.
    other.acquire().await;
    waiter.enqueue().await;
    release_quietly(&store, &waiter).await;
    other.release().await;
    waiter.next_ask_again().await;
    waiter.release().await;
}

pub(crate) async fn a_hint_counts_instead_of_the_clock(store: Subject) {
    let (first, second) = (store.claim("hint"), store.claim("hint"));
    let early = acquired(&store, &first, TTL).await;
    release(&store, &first).await;
    let number = async |claim, hint| {
        let request = AcquireRequest::new(claim, TTL).hint(hint);
        match store.acquire(&request).await.unwrap() {
            AcquireOutcome::Acquired { fencing, .. } => fencing,
            AcquireOutcome::Held { .. } => panic!("it is free"),
        }
    };
    let soon = early.get() / FencingToken::from_counter(1).get() + 1_800_000_000;
    assert_eq!(number(second.clone(), soon).await, FencingToken::from_counter(soon));
    // The counter never goes back, whatever the hint and the clock.
    assert_eq!(number(second.clone(), 5).await, FencingToken::from_counter(soon + 1));
    // A hint that is years ahead does not move the counter.
    assert_eq!(number(second.clone(), 2 * LATER).await, FencingToken::from_counter(soon + 2));
    release(&store, &second).await;
    let last = acquired(&store, &first, TTL).await;
    assert!(last > FencingToken::from_counter(soon + 2) && last > early);
}

pub(crate) async fn a_renewal_writes_a_token_back_where_the_lock_is_held(store: Subject) {
    let (held, gone) = (store.claim("back"), store.claim("gone"));
    acquired(&store, &held, TTL).await;
    acquired(&store, &gone, TTL).await;
    release(&store, &gone).await;
    let (much, more) = (FencingToken::from_counter(LATER), FencingToken::from_counter(2 * LATER));
    let renewals = [
        RenewRequest::new(held.clone(), TTL).fenced(much),
        RenewRequest::new(gone, TTL).fenced(more),
    ];
    let outcomes: Vec<_> = store.renew(&renewals).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(outcomes, [RenewOutcome::Renewed, RenewOutcome::NotHeld]);
    release(&store, &held).await;
    let next = acquired(&store, &store.claim("back"), TTL).await;
    assert!(next > much, "the token was not written back");
    assert!(next < more, "a claim that does not hold the lock wrote a token back");
}
