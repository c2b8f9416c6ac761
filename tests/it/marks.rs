//! Claims that mark keys as done, sent to a store without a manager: for the tests of each engine.

use std::sync::Arc;
use std::time::Duration;

use lockattr::Holder;
use lockattr::store::{
    AcquireOutcome, AcquireRequest, AnyStore, Claim, LockKey, Notification, ReleaseOutcome,
    ReleaseRequest, Sharing, StoreError, Subscriber, Subscription, Waiting,
};
use lockattr_tests::in_time;
use tokio::time::Instant;

pub(crate) const TTL: Duration = Duration::from_secs(20);
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// One process, as the store sees it.
pub(crate) struct Process {
    pub(crate) store: AnyStore,
    subscriber: Arc<Subscriber>,
}

impl Process {
    pub(crate) fn on(store: impl Into<AnyStore>) -> Self {
        let (store, subscriber) = (store.into(), Arc::new(Subscriber::new(|_name| {})));
        store.subscribe(&subscriber);
        Self { store, subscriber }
    }

    /// Returns a claim for all of these keys.
    pub(crate) fn claim(&self, keys: &[&str]) -> Arc<Claim> {
        let mut keys = keys.iter().map(|key| LockKey::new("lock:", key).unwrap());
        let first = keys.next().unwrap();
        let label = "service=reports function=nightly";
        Arc::new(Claim::of(&self.subscriber, first, keys, Sharing::Exclusive, label))
    }

    /// Returns a claim that holds this key.
    pub(crate) async fn holder_of(&self, key: &str) -> Arc<Claim> {
        let claim = self.claim(&[key]);
        assert_eq!(self.refused(&claim).await, None);
        claim
    }

    /// Asks once. Returns who holds the lock, if the claim is refused.
    pub(crate) async fn refused(&self, claim: &Arc<Claim>) -> Option<Holder> {
        self.ask(AcquireRequest::new(claim.clone(), TTL)).await
    }

    /// Joins the queue.
    pub(crate) async fn enqueue(&self, claim: &Arc<Claim>) -> Subscription {
        let notifications = self.subscriber.subscribe(claim.token());
        let request = AcquireRequest::new(claim.clone(), TTL).waiting(Waiting::Queued);
        assert!(self.ask(request).await.is_some(), "granted");
        notifications
    }

    async fn ask(&self, request: AcquireRequest) -> Option<Holder> {
        match self.store.acquire(&request).await.unwrap() {
            AcquireOutcome::Acquired { .. } => None,
            AcquireOutcome::Held { holder, .. } => Some(*holder.expect("a holder")),
        }
    }

    pub(crate) async fn mark(
        &self,
        claim: &Claim,
        lasts: Duration,
    ) -> Result<ReleaseOutcome, StoreError> {
        self.store.mark_done(claim, lasts).await
    }

    pub(crate) async fn release(&self, claim: &Arc<Claim>) -> ReleaseOutcome {
        self.store.release(&[ReleaseRequest::new(claim.clone())]).await.remove(0).unwrap()
    }

    /// Takes the key from its holder.
    pub(crate) async fn force_release(&self, key: &str) -> bool {
        let id = self.holder(key).await.expect("it is held").id;
        self.store.force_release(&LockKey::new("lock:", key).unwrap(), &id).await.unwrap()
    }

    /// Returns the holder of the key.
    pub(crate) async fn holder(&self, key: &str) -> Option<Holder> {
        self.store.holder(&LockKey::new("lock:", key).unwrap()).await.unwrap()
    }
}

/// Waits until the claim is notified to ask again, which is now.
pub(crate) async fn asks_again_now(notifications: &Subscription) {
    match in_time(notifications.next()).await {
        Notification::AskAgain(at) => assert!(at <= Instant::now(), "only later"),
        granted @ Notification::Granted(_) => panic!("{granted:?}"),
    }
}
