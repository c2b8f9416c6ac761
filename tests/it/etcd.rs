//! A real etcd cluster: the entries in it, and what happens when a member or a session goes away.

mod connections;
mod credentials;
mod grpc_proxy;
mod left;
mod members;
mod names;
mod own_client;
mod rights;
mod sessions;
mod storm;
mod tls;
mod unknown;
mod urls;

use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseOutcome, ReleaseRequest, Store,
};
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Engine, Etcd, eventually};

/// A lease that does not end.
const TTL: Duration = Duration::from_secs(600);

fn claim(key: &str) -> Arc<Claim> {
    Arc::new(Claim::new(LockKey::new("etcd:", key).expect("a good key"), "service=test"))
}

async fn acquire(store: &impl Store, claim: &Arc<Claim>) -> Result<AcquireOutcome, String> {
    let request = AcquireRequest::new(claim.clone(), TTL);
    store.acquire(&request).await.map_err(|error| error.to_string())
}

async fn is_acquired(store: &impl Store, claim: &Arc<Claim>) -> bool {
    matches!(acquire(store, claim).await, Ok(AcquireOutcome::Acquired { .. }))
}

async fn release(store: &impl Store, claim: &Arc<Claim>) -> Result<ReleaseOutcome, String> {
    let outcome = store.release(&[ReleaseRequest::new(claim.clone())]).await.remove(0);
    outcome.map_err(|error| error.to_string())
}

async fn manager(url: &str) -> LockManager {
    LockManager::connect(url).await.expect("etcd answers")
}

/// The URL for this user, whose password is `s3cret/`.
fn url_of(user: &str, etcd: &Etcd) -> String {
    etcd.url().replace("etcd://", &format!("etcd://{user}:s3cret%2F@"))
}

/// Returns how many seconds ago a lease was granted or kept alive.
async fn lapsed(etcd: &Etcd, lease: &str) -> u64 {
    let told = etcd.ctl(&["lease", "timetolive", lease]).await;
    let seconds = told.split("s)").filter_map(|part| part.rsplit('(').next()?.parse::<u64>().ok());
    let [granted, remaining] = seconds.collect::<Vec<_>>()[..] else { panic!("{told}") };
    granted - remaining
}

/// Returns once the session has been kept alive: a lease that is younger ends sooner.
async fn is_kept_alive(etcd: &Etcd, session: &str) {
    let granted = etcd.ctl(&["lease", "grant", "600"]).await;
    let later = granted.split(' ').nth(1).expect("lease ID granted");
    let kept = async || lapsed(etcd, later).await > lapsed(etcd, session).await + 1;
    eventually("the session is kept alive", kept).await;
    etcd.ctl(&["lease", "revoke", later]).await;
}
