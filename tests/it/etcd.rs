//! A real etcd cluster: the entries in it, and what happens when a member or a session goes away.

mod connections;
mod credentials;
mod left;
mod members;
mod names;
mod own_client;
mod rights;
mod sessions;
mod storm;
mod tls;
mod unknown;

use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseOutcome, ReleaseRequest, Store,
};
use lockattr::{LockManager, LockOptions};

/// Limit for anything that depends on no timer.
const SOON: Duration = Duration::from_secs(12);

const TTL: Duration = Duration::from_secs(10);

fn claim(key: &str) -> Arc<Claim> {
    Arc::new(Claim::new(LockKey::new("etcd:", key).expect("a good key"), "service=test"))
}

async fn acquire(store: &impl Store, claim: &Arc<Claim>) -> Result<AcquireOutcome, String> {
    let request = AcquireRequest::new(claim.clone(), TTL);
    store.acquire(&request).await.map_err(|error| error.to_string())
}

async fn release(store: &impl Store, claim: &Arc<Claim>) -> Result<ReleaseOutcome, String> {
    let outcome = store.release(&[ReleaseRequest::new(claim.clone())]).await.remove(0);
    outcome.map_err(|error| error.to_string())
}

async fn manager(url: &str) -> LockManager {
    LockManager::connect(url).await.expect("etcd answers")
}

/// Options of a waiter with a long wait budget.
fn long_wait() -> LockOptions {
    LockOptions::new().wait(Duration::from_secs(60))
}
