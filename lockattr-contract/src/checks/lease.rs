//! One claim and one lock: acquire, renew, release, and a lease that expires.

use std::future::poll_fn;
use std::task::Poll;

use crate::eventually::eventually;
use lockattr::store::{
    AcquireOutcome, AcquireRequest, ReleaseOutcome, ReleaseRequest, RenewOutcome, RenewRequest,
};

use super::{LONGER, SHORT, TTL};
use crate::subject::{Subject, acquired, acquired_briefly, release, renew};

pub(crate) async fn a_free_lock_is_acquired(store: Subject) {
    let claim = store.claim("free");
    assert_eq!(store.holder(claim.key()).await.unwrap(), None);
    acquired(&store, &claim, TTL).await;
    let holder = store.holder(claim.key()).await.unwrap().expect("held");
    assert!(holder.remaining.is_some_and(|left| left <= TTL && left > TTL / 2));
}

pub(crate) async fn a_held_lock_names_its_holder(store: Subject) {
    acquired(&store, &store.claim("held"), TTL).await;
    let AcquireOutcome::Held { holder: Some(holder), .. } =
        store.acquire(&AcquireRequest::new(store.claim("held"), TTL)).await.unwrap()
    else {
        panic!("granted twice, or a holder without a name");
    };
    assert_eq!(holder.service.as_deref(), Some("a contract"));
    assert_eq!(holder.host.as_deref(), Some("here"));
    assert_eq!(holder.process, Some(7));
    assert_eq!(holder.function.as_deref(), Some("suite::test"));
    assert!(holder.since.is_some() && holder.remaining.is_some());
}

pub(crate) async fn the_same_claim_is_granted_again(store: Subject) {
    let claim = store.claim("again");
    let first = acquired(&store, &claim, TTL / 3).await;
    let second = acquired(&store, &claim, TTL).await;
    assert!(second >= first);
    // A majority has granted it. The other nodes of a quorum may show the first lease for a moment more.
    let anew = async || {
        let holder = store.holder(claim.key()).await.unwrap().expect("held");
        holder.remaining.is_some_and(|left| left > TTL / 2)
    };
    eventually("the lease starts anew", anew).await;
}

/// The same for stores whose leases have no deadline.
pub(crate) async fn the_same_claim_is_granted_again_without_end(store: Subject) {
    let claim = store.claim("again");
    let first = acquired(&store, &claim, TTL).await;
    let second = acquired(&store, &claim, TTL).await;
    assert!(second >= first);
    assert!(store.holder(claim.key()).await.unwrap().is_some());
    // One release is enough, however often the lock was granted.
    assert_eq!(release(&store, &claim).await, ReleaseOutcome::Released);
    assert_eq!(store.holder(claim.key()).await.unwrap(), None);
}

pub(crate) async fn a_released_lock_is_free(store: Subject) {
    let first = store.claim("released");
    acquired(&store, &first, TTL).await;
    assert_eq!(release(&store, &first).await, ReleaseOutcome::Released);
    assert_eq!(store.holder(first.key()).await.unwrap(), None);
    acquired(&store, &store.claim("released"), TTL).await;
}

pub(crate) async fn a_stale_release_frees_no_lock(store: Subject) {
    let (first, second) = (store.claim("stale"), store.claim("stale"));
    acquired(&store, &first, TTL).await;
    release(&store, &first).await;
    acquired(&store, &second, TTL).await;
    assert_eq!(release(&store, &first).await, ReleaseOutcome::NotHeld);
    assert_eq!(renew(&store, &second, TTL).await, RenewOutcome::Renewed, "the successor was freed");
}

pub(crate) async fn a_second_release_is_not_held(store: Subject) {
    let claim = store.claim("twice");
    acquired(&store, &claim, TTL).await;
    assert_eq!(release(&store, &claim).await, ReleaseOutcome::Released);
    assert_eq!(release(&store, &claim).await, ReleaseOutcome::NotHeld);
}

pub(crate) async fn a_lease_ends_by_itself(store: Subject) {
    let (first, second) = (store.claim("ends"), store.claim("ends"));
    acquired_briefly(&store, &first).await;
    eventually("the lease ends", async || {
        matches!(
            store.acquire(&AcquireRequest::new(second.clone(), TTL)).await,
            Ok(AcquireOutcome::Acquired { .. })
        )
    })
    .await;
    assert_eq!(release(&store, &first).await, ReleaseOutcome::NotHeld);
}

pub(crate) async fn a_renewed_lease_runs_on(store: Subject) {
    let claim = store.claim("renewed");
    acquired(&store, &claim, TTL).await;
    assert_eq!(renew(&store, &claim, LONGER).await, RenewOutcome::Renewed);
    let holder = store.holder(claim.key()).await.unwrap().expect("held");
    assert!(holder.remaining.is_some_and(|left| left > TTL));
}

pub(crate) async fn a_renewal_never_shortens(store: Subject) {
    let claim = store.claim("shorter");
    acquired(&store, &claim, LONGER).await;
    assert_eq!(renew(&store, &claim, SHORT).await, RenewOutcome::Renewed);
    let holder = store.holder(claim.key()).await.unwrap().expect("held");
    assert!(holder.remaining.is_some_and(|left| left > TTL));
}

pub(crate) async fn a_renewal_resurrects_nothing(store: Subject) {
    let (first, second) = (store.claim("dead"), store.claim("dead"));
    assert_eq!(renew(&store, &first, TTL).await, RenewOutcome::NotHeld, "never acquired");
    acquired(&store, &first, TTL).await;
    release(&store, &first).await;
    assert_eq!(renew(&store, &first, TTL).await, RenewOutcome::NotHeld, "released");
    assert_eq!(store.holder(first.key()).await.unwrap(), None);
    acquired(&store, &second, TTL).await;
    assert_eq!(renew(&store, &first, TTL).await, RenewOutcome::NotHeld, "another's");
}

pub(crate) async fn a_renewal_does_not_resurrect_a_lease_that_ended(store: Subject) {
    let claim = store.claim("ended");
    acquired_briefly(&store, &claim).await;
    let is_over = async || store.holder(claim.key()).await.unwrap().is_none();
    eventually("the lease ends", is_over).await;
    assert_eq!(renew(&store, &claim, TTL).await, RenewOutcome::NotHeld, "it had ended");
    assert_eq!(store.holder(claim.key()).await.unwrap(), None, "it was resurrected");
    acquired(&store, &store.claim("ended"), TTL).await;
}

pub(crate) async fn a_dropped_request_takes_effect_before_a_later_one(store: Subject) {
    store.ping().await.expect("an answer");
    for n in 0..20 {
        let (dropped, next) = (store.claim(&format!("{n}")), store.claim(&format!("{n}")));
        let request = AcquireRequest::new(dropped.clone(), LONGER);
        let mut sent = store.acquire(&request);
        // One poll sends the command.
        let _answered = poll_fn(|context| Poll::Ready(sent.as_mut().poll(context))).await;
        drop(sent);
        release(&store, &dropped).await;
        acquired(&store, &next, TTL).await;
        let late = renew(&store, &dropped, TTL).await;
        assert_eq!(late, RenewOutcome::NotHeld, "it took effect after its release");
        assert_eq!(renew(&store, &next, TTL).await, RenewOutcome::Renewed);
    }
}

pub(crate) async fn batches_answer_one_by_one_in_order(store: Subject) {
    // More claims than a store puts into one command. Every third one does not hold its lock.
    let claims: Vec<_> = (0..350).map(|n| store.claim(&format!("batch:{n}"))).collect();
    for (n, claim) in claims.iter().enumerate() {
        if n % 3 != 0 {
            acquired(&store, claim, TTL).await;
        }
    }
    let renewals = claims.iter().map(|claim| RenewRequest::new(claim.clone(), LONGER));
    let renewed = store.renew(&renewals.collect::<Vec<_>>()).await;
    let releases: Vec<_> = claims.iter().cloned().map(ReleaseRequest::new).collect();
    let released = store.release(&releases).await;
    assert_eq!((renewed.len(), released.len()), (350, 350));
    for n in 0..350 {
        let ours = n % 3 != 0;
        assert_eq!(*renewed[n].as_ref().unwrap() == RenewOutcome::Renewed, ours, "renewal {n}");
        assert_eq!(*released[n].as_ref().unwrap() == ReleaseOutcome::Released, ours, "release {n}");
    }
}

pub(crate) async fn an_empty_batch_has_no_answers(store: Subject) {
    assert!(store.renew(&[]).await.is_empty());
    assert!(store.release(&[]).await.is_empty());
}
