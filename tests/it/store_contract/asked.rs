//! Requests to a store, made with claims that do not wait in a queue.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use lockattr::FencingToken;
use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest,
};

use super::AnyStore;

pub(super) const LABEL: &str =
    "since=1700000000000 service=a%20contract host=here pid=7 function=suite::test";

/// The prefix of all locks of the suite.
pub(super) const PREFIX: &str = "contract:";

thread_local! {
    /// The key prefix of the test that runs on this thread.
    static APART: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Sets the key prefix of this test, for tests that share one store.
pub(super) fn set_key_prefix(prefix: &str) {
    APART.set(prefix.to_owned());
}

/// Returns the full prefix of this test's locks.
pub(super) fn prefix() -> String {
    [PREFIX, &APART.with_borrow(String::clone)].concat()
}

pub(super) fn key(key: &str) -> LockKey {
    LockKey::new(&prefix(), key).expect("a good key")
}

pub(super) fn claim(named: &str) -> Arc<Claim> {
    Arc::new(Claim::new(key(named), LABEL))
}

pub(super) async fn acquired(store: &AnyStore, claim: &Arc<Claim>, ttl: Duration) -> FencingToken {
    match store.acquire(&AcquireRequest::new(claim.clone(), ttl)).await {
        Ok(AcquireOutcome::Acquired { fencing, .. }) => fencing,
        other => panic!("{claim:?} was not granted: {other:?}"),
    }
}

pub(super) async fn renew(store: &AnyStore, claim: &Arc<Claim>, ttl: Duration) -> RenewOutcome {
    store.renew(&[RenewRequest::new(claim.clone(), ttl)]).await.remove(0).unwrap()
}

pub(super) async fn release(store: &AnyStore, claim: &Arc<Claim>) -> ReleaseOutcome {
    store.release(&[ReleaseRequest::new(claim.clone())]).await.remove(0).unwrap()
}
