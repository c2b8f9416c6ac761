//! The store that a check examines, and requests to it.

use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, AnyStore, Claim, LockKey, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest,
};
use lockattr::{FencingToken, HolderId};

use tokio::time::sleep;

use crate::checks::SHORT;
use crate::fleet::ErasedFleet;

/// What every claim says about its holder.
pub(crate) const LABEL: &str =
    "since=1700000000000 service=a%20contract host=here pid=7 function=suite::test";

/// One node of a fleet. It dereferences to its store.
pub(crate) struct Subject {
    fleet: Rc<dyn ErasedFleet>,
    store: AnyStore,
    prefix: String,
}

impl Subject {
    pub(crate) fn new(fleet: Rc<dyn ErasedFleet>) -> Self {
        let (store, prefix) = (fleet.node(), fleet.prefix());
        Self { fleet, store, prefix }
    }

    /// The same store as one more process sees it.
    pub(crate) fn another_node(&self) -> Self {
        Self::new(self.fleet.clone())
    }

    pub(crate) async fn wait_until_gone(&self, subscriber: u64) {
        self.fleet.wait_until_gone(subscriber).await;
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn key(&self, key: &str) -> LockKey {
        LockKey::new(&self.prefix, key).expect("a good key")
    }

    /// A claim that does not wait in a queue.
    pub(crate) fn claim(&self, named: &str) -> Arc<Claim> {
        Arc::new(Claim::new(self.key(named), LABEL))
    }
}

impl Deref for Subject {
    type Target = AnyStore;

    fn deref(&self) -> &Self::Target {
        &self.store
    }
}

pub(crate) async fn acquired(store: &AnyStore, claim: &Arc<Claim>, ttl: Duration) -> FencingToken {
    match store.acquire(&AcquireRequest::new(claim.clone(), ttl)).await {
        Ok(AcquireOutcome::Acquired { fencing, .. }) => fencing,
        other => panic!("{claim:?} was not granted: {other:?}"),
    }
}

/// Acquires the lock for a lease that soon ends. A store may refuse a lease that ends before its reply arrives, so on a
/// busy machine the lease is longer.
pub(crate) async fn acquired_briefly(store: &AnyStore, claim: &Arc<Claim>) -> FencingToken {
    for doubled in 0..12 {
        let request = AcquireRequest::new(claim.clone(), SHORT * 2_u32.pow(doubled));
        if let Ok(AcquireOutcome::Acquired { fencing, .. }) = store.acquire(&request).await {
            return fencing;
        }
        sleep(SHORT).await;
    }
    panic!("{claim:?} was not granted")
}

/// Asks once. Returns whether the claim holds the lock now.
pub(crate) async fn is_acquired(store: &AnyStore, claim: &Arc<Claim>, ttl: Duration) -> bool {
    let answer = store.acquire(&AcquireRequest::new(claim.clone(), ttl)).await;
    matches!(answer.expect("an answer"), AcquireOutcome::Acquired { .. })
}

/// The id of the holder, as an operator sees it.
pub(crate) async fn seen(store: &AnyStore, key: &LockKey) -> HolderId {
    store.holder(key).await.expect("an answer").expect("it is not held").id
}

/// Takes the lock from its holder, as an operator does. Returns whether that had it.
pub(crate) async fn force_release(store: &AnyStore, key: &LockKey) -> bool {
    let holder = seen(store, key).await;
    store.force_release(key, &holder).await.expect("an answer")
}

pub(crate) async fn renew(store: &AnyStore, claim: &Arc<Claim>, ttl: Duration) -> RenewOutcome {
    store.renew(&[RenewRequest::new(claim.clone(), ttl)]).await.remove(0).expect("an answer")
}

pub(crate) async fn release(store: &AnyStore, claim: &Arc<Claim>) -> ReleaseOutcome {
    store.release(&[ReleaseRequest::new(claim.clone())]).await.remove(0).expect("an answer")
}
