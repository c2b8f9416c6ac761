//! What a store does for a claim that needs the locks of several stores at once: it notifies the
//! claim when to ask again, counts from the claim's hint, and releases without notification what
//! failed.

use lockattr::FencingToken;
use lockattr::store::{AcquireOutcome, AcquireRequest, ReleaseRequest, RenewOutcome, RenewRequest};
use tokio::time::{Instant, timeout};

use super::asked::{acquired, claim, key, release};
use super::fleet::Manager;
use super::{AnyStore, MEANWHILE, SHORT, TTL};

/// A counter in the year 2100, ahead of any clock.
const LATER: u64 = 2_400_000_000_000_000;

pub(super) async fn a_notified_claim_acquires_the_lock(store: AnyStore) {
    let (here, there) = (Manager::on(&store), Manager::on(&store));
    let (holder, waiter) = (here.wants("told"), there.wants("told").told());
    holder.gets().await;
    waiter.stands().await;
    assert_eq!(here.contended(), [key("told").name()]);
    assert!(holder.releases().await);
    assert!(waiter.told_when_to_ask_again().await <= Instant::now());
    assert_eq!(store.holder(waiter.claim.key()).await.unwrap(), None, "it was not granted");
    assert!(!waiter.gets().await.1, "no other claim waits");
    assert!(waiter.releases().await);
}

pub(super) async fn a_notified_claim_acquires_the_free_lock_past_other_waiters(store: AnyStore) {
    let manager = Manager::on(&store);
    let holder = manager.wants("barge");
    let (first, second) = (manager.wants("barge").told(), manager.wants("barge"));
    holder.gets().await;
    first.stands().await;
    second.stands().await;
    holder.releases().await;
    first.told_when_to_ask_again().await;
    assert!(!second.holds().await, "it is the turn of the first");
    assert!(first.gets().await.1, "the second is queued");
    first.releases().await;
    second.granted().await;
    second.releases().await;
}

pub(super) async fn a_later_claim_does_not_overtake_a_notified_one(store: AnyStore) {
    let manager = Manager::on(&store);
    let [holder, first, second, later] = [(); 4].map(|()| manager.wants("later").told());
    holder.gets().await;
    first.stands().await;
    second.stands().await;
    holder.releases().await;
    first.told_when_to_ask_again().await;
    // It is the first waiter's turn, and the second one stays queued.
    later.stands().await;
    first.gets().await;
    first.releases().await;
    second.granted().await;
    second.releases().await;
    later.granted().await;
    later.releases().await;
}

pub(super) async fn a_queued_claim_is_granted_the_lock_without_a_request(store: AnyStore) {
    let manager = Manager::on(&store);
    let (holder, waiter) = (manager.wants("unasked"), manager.wants("unasked"));
    let (first, _) = holder.gets().await;
    waiter.stands().await;
    holder.releases().await;
    assert!(waiter.is_granted().await.fencing > first);
    assert!(waiter.releases().await);
}

/// A claim that acquired the lock must not leave its queue entry behind.
pub(super) async fn a_claim_that_acquires_before_its_notification_has_left_the_queue(
    store: AnyStore,
) {
    let manager = Manager::on(&store);
    let (holder, waiter) = (manager.wants("early").for_so_long(MEANWHILE), manager.wants("early"));
    let waiter = waiter.told();
    holder.gets().await;
    waiter.stands().await;
    tokio::time::sleep(2 * MEANWHILE).await;
    assert!(!waiter.gets().await.1, "no other claim waits");
    waiter.releases().await;
    assert!(!manager.wants("early").gets().await.1, "its queue entry was left behind");
}

pub(super) async fn one_claim_at_a_time_is_notified(store: AnyStore) {
    let manager = Manager::on(&store);
    let (holder, first, second) =
        (manager.wants("one"), manager.wants("one").told(), manager.wants("one").told());
    holder.gets().await;
    first.stands().await;
    second.stands().await;
    holder.releases().await;
    first.told_when_to_ask_again().await;
    let second_is_told = second.told_when_to_ask_again();
    assert!(timeout(SHORT, second_is_told).await.is_err(), "both were notified");
    // When the first waiter gives up, the next one is notified.
    first.releases().await;
    second.told_when_to_ask_again().await;
    second.gets().await;
    second.releases().await;
}

pub(super) async fn a_quiet_release_notifies_no_claim_and_keeps_the_place(store: AnyStore) {
    let manager = Manager::on(&store);
    let (holder, waiter) = (manager.wants("quiet"), manager.wants("quiet").told());
    holder.gets().await;
    waiter.stands().await;
    let quietly = [ReleaseRequest::new(holder.claim.clone()).without_notification()];
    store.release(&quietly).await.remove(0).unwrap();
    let is_told = waiter.told_when_to_ask_again();
    assert!(timeout(SHORT, is_told).await.is_err(), "it was notified");
    assert_eq!(store.holder(holder.claim.key()).await.unwrap(), None);

    // The next caller finds the lock free, but the queued waiter comes first.
    let other = manager.wants("quiet");
    assert!(!other.asks_once().await, "it overtook the queue");
    waiter.told_when_to_ask_again().await;

    // A queued waiter that releases without notification stays queued.
    other.gets().await;
    waiter.stands().await;
    store
        .release(&[ReleaseRequest::new(waiter.claim.clone()).without_notification()])
        .await
        .remove(0)
        .unwrap();
    other.releases().await;
    waiter.told_when_to_ask_again().await;
    waiter.releases().await;
}

pub(super) async fn a_hint_counts_instead_of_the_clock(store: AnyStore) {
    let (first, second) = (claim("hint"), claim("hint"));
    let early = acquired(&store, &first, TTL).await;
    release(&store, &first).await;
    let number = async |claim, hint| {
        let asked = AcquireRequest::new(claim, TTL).hint(hint);
        match store.acquire(&asked).await.unwrap() {
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

pub(super) async fn a_renewal_writes_a_token_back_where_the_lock_is_held(store: AnyStore) {
    let (held, gone) = (claim("back"), claim("gone"));
    acquired(&store, &held, TTL).await;
    acquired(&store, &gone, TTL).await;
    release(&store, &gone).await;
    let (much, more) = (FencingToken::from_counter(LATER), FencingToken::from_counter(2 * LATER));
    let renewals = [
        RenewRequest::new(held.clone(), TTL).fenced(much),
        RenewRequest::new(gone, TTL).fenced(more),
    ];
    let answers: Vec<_> = store.renew(&renewals).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers, [RenewOutcome::Renewed, RenewOutcome::NotHeld]);
    release(&store, &held).await;
    let next = acquired(&store, &claim("back"), TTL).await;
    assert!(next > much, "the token was not written back");
    assert!(next < more, "a claim that does not hold the lock wrote a token back");
}
