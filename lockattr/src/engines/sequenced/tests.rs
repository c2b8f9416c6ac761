//! Schedules of this layer over [servers](servers::Servers) that reply as a test says, on a paused
//! clock.

mod as_quorum_node;
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

    async fn asks(&self, claim: &Arc<Claim>) -> Result<AcquireOutcome, StoreError> {
        self.asks_for(claim, TTL, Waiting::Queued).await
    }

    async fn asks_for(
        &self,
        claim: &Arc<Claim>,
        ttl: Duration,
        waiting: Waiting,
    ) -> Result<AcquireOutcome, StoreError> {
        self.store.acquire(&AcquireRequest::new(claim.clone(), ttl).waiting(waiting)).await
    }

    /// Acquires a free lock.
    async fn takes(&self, claim: &Arc<Claim>) {
        let answer = self.asks(claim).await;
        assert!(matches!(answer, Ok(AcquireOutcome::Acquired { .. })), "{answer:?}");
    }

    /// Queues for a held lock.
    async fn waits(&self, claim: &Arc<Claim>) {
        let answer = self.asks(claim).await;
        assert!(matches!(answer, Ok(AcquireOutcome::Held { queued: Some(_), .. })), "{answer:?}");
    }

    async fn releases(&self, claim: &Arc<Claim>) -> Result<ReleaseOutcome, StoreError> {
        self.store.release(&[ReleaseRequest::new(claim.clone())]).await.remove(0)
    }

    async fn renews(&self, claim: &Arc<Claim>) -> Result<RenewOutcome, StoreError> {
        self.store.renew(&[RenewRequest::new(claim.clone(), TTL)]).await.remove(0)
    }

    /// Returns the notification that the claim gets while `doing` runs.
    async fn news(&self, claim: &Claim, doing: impl Future<Output = ()>) -> Notification {
        let expected = self.subscriber.subscribe(claim.token());
        doing.await;
        timeout(TTL, expected.next()).await.expect("news")
    }

    #[track_caller]
    fn nothing_is_left(&self) {
        for name in ["a", "b"] {
            assert_eq!(self.servers.queue(name), [], "in the line of {name}");
        }
        assert!(self.store.shared.claims().is_empty(), "places");
    }
}
