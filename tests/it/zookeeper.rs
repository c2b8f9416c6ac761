//! Behavior specific to ZooKeeper: sessions, watches, and servers that lag behind.

mod connections;
mod credentials;
mod entries;
mod followers;
mod large;
mod own_client;
mod parents;
mod sessions;
pub(crate) mod storm;
mod tls;
mod urls;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, Sharing, Store, Subscriber, Waiting, ZookeeperStore,
};
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{ZooKeeper, eventually};

/// A lease that does not end.
const TTL: Duration = Duration::from_secs(600);

/// Returns the node under which a URL keeps its locks.
fn chroot(url: &str) -> String {
    let (_, hosts) = url.split_once("://").expect("a scheme");
    let (_, path) = hosts.split_once('/').expect("a path");
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    format!("/{path}")
}

/// Returns the entries in the queue of this lock, by the paths of their nodes.
async fn line(ensemble: &ZooKeeper, url: &str, key: &str) -> Vec<String> {
    let below = format!("{}/lock:{key}/", chroot(url));
    let left = ensemble.left_below(&chroot(url)).await;
    left.into_iter().filter(|path| path.starts_with(&below)).collect()
}

async fn nothing_is_left(ensemble: &ZooKeeper, url: &str) {
    let nothing = async || ensemble.left_below(&chroot(url)).await.is_empty();
    eventually("neither entries nor their parents are left", nothing).await;
}

/// Ends the session that created this entry, as if it had timed out.
async fn end_session_of(ensemble: &ZooKeeper, entry: &str) {
    let name = entry.rsplit('/').next().expect("a name");
    let session = name.split('-').nth(2).expect("a session");
    let session = u64::from_str_radix(session, 16).expect("a number");
    ensemble.end_session(session).await;
}

/// Creates a claim as a manager does.
fn claim(subscriber: &Subscriber, key: &str) -> Arc<Claim> {
    let key = LockKey::new("lock:", key).expect("a good key");
    Arc::new(Claim::of(subscriber, key, [], Sharing::Exclusive, "service=test"))
}

async fn asks(store: &impl Store, claim: &Arc<Claim>) -> bool {
    let request = AcquireRequest::new(claim.clone(), TTL).waiting(Waiting::Queued);
    matches!(store.acquire(&request).await.expect("an answer"), AcquireOutcome::Acquired { .. })
}

async fn releases(store: &impl Store, claim: &Arc<Claim>) -> bool {
    let outcomes = store.release(&[ReleaseRequest::new(claim.clone())]).await;
    matches!(outcomes[..], [Ok(ReleaseOutcome::Released)])
}

async fn holds(store: &impl Store, claim: &Arc<Claim>) -> bool {
    let outcomes = store.renew(&[RenewRequest::new(claim.clone(), TTL)]).await;
    matches!(outcomes[..], [Ok(RenewOutcome::Renewed)])
}
