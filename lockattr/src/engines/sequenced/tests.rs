//! Schedules of this layer over [servers](servers::Servers) that reply as a test says, on a paused
//! clock.

mod as_quorum_node;
mod late_requests;
mod partial_loss;
mod removals;
mod servers;
mod stale_reads;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::SequencedStore;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, Notification, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Sharing, Store, StoreError, Subscriber, Waiting,
};
use servers::{FakeRecipe, Fate, Servers};

const TTL: Duration = Duration::from_secs(10);

/// Longer than any step here takes by itself, and shorter than any lease.
const SHORTLY: Duration = Duration::from_millis(300);

/// One store, its servers, and the subscriber of its manager.
struct Fixture {
    servers: Servers,
    store: Arc<SequencedStore<FakeRecipe>>,
    subscriber: Arc<Subscriber>,
}

impl Fixture {
    fn new() -> Self {
        let (servers, subscriber) = (Servers::new(), Arc::new(Subscriber::new(|_| {})));
        let store = Arc::new(SequencedStore::new(servers.recipe()));
        store.subscribe(&subscriber);
        Self { servers, store, subscriber }
    }

    fn claim(&self, keys: &[&str]) -> Arc<Claim> {
        let key = |name: &&str| LockKey::new("", name).unwrap();
        let others = keys[1..].iter().map(key);
        Arc::new(Claim::of(&self.subscriber, key(&keys[0]), others, Sharing::Exclusive, ""))
    }

    async fn acquire(&self, claim: &Arc<Claim>) -> Result<AcquireOutcome, StoreError> {
        self.acquire_with(claim, TTL, Waiting::Queued).await
    }

    async fn acquire_with(
        &self,
        claim: &Arc<Claim>,
        ttl: Duration,
        waiting: Waiting,
    ) -> Result<AcquireOutcome, StoreError> {
        self.store.acquire(&AcquireRequest::new(claim.clone(), ttl).waiting(waiting)).await
    }

    /// Acquires a free lock.
    async fn expect_acquired(&self, claim: &Arc<Claim>) {
        let outcome = self.acquire(claim).await;
        assert!(matches!(outcome, Ok(AcquireOutcome::Acquired { .. })), "{outcome:?}");
    }

    /// Queues for a held lock.
    async fn expect_queued(&self, claim: &Arc<Claim>) {
        let outcome = self.acquire(claim).await;
        assert!(matches!(outcome, Ok(AcquireOutcome::Held { queued: Some(_), .. })), "{outcome:?}");
    }

    async fn release(&self, claim: &Arc<Claim>) -> Result<ReleaseOutcome, StoreError> {
        self.store.release(&[ReleaseRequest::new(claim.clone())]).await.remove(0)
    }

    async fn renew(&self, claim: &Arc<Claim>) -> Result<RenewOutcome, StoreError> {
        self.store.renew(&[RenewRequest::new(claim.clone(), TTL)]).await.remove(0)
    }

    /// Returns the notification that the claim gets while `action` runs.
    async fn notification_during(
        &self,
        claim: &Claim,
        action: impl Future<Output = ()>,
    ) -> Notification {
        let subscription = self.subscriber.subscribe(claim.token());
        action.await;
        timeout(TTL, subscription.next()).await.expect("a notification")
    }

    #[track_caller]
    fn assert_nothing_left_in(&self, names: &[&str]) {
        for name in names {
            assert_eq!(self.servers.queue(name), [], "in the queue of {name}");
        }
    }

    #[track_caller]
    fn assert_nothing_left(&self) {
        self.assert_nothing_left_in(&["a", "b"]);
        assert!(self.store.shared.claims().is_empty(), "claims left");
    }
}
