//! Schedules of this layer over [servers](servers::Servers) that answer as a test says, on a paused
//! clock.

mod looks;
mod nodes;
mod parts;
mod removals;
mod servers;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::OrderedStore;
use crate::store::{
    Acquire, Acquiring, Claim, Inbox, LockKey, News, Release, Releasing, Renew, Renewal, Sharing,
    Store, StoreError, Waiting,
};
use servers::{Fake, Fate, Servers};

const TTL: Duration = Duration::from_secs(10);

/// Longer than anything here takes by itself, and shorter than any lease.
const SHORTLY: Duration = Duration::from_millis(300);

/// One store, its servers, and the inbox of its manager.
struct Here {
    servers: Servers,
    store: Arc<OrderedStore<Fake>>,
    inbox: Arc<Inbox>,
}

impl Here {
    fn new() -> Self {
        let (servers, inbox) = (Servers::new(), Arc::new(Inbox::new(|_| {})));
        let store = Arc::new(OrderedStore::new(servers.ensemble()));
        store.listen(&inbox);
        Self { servers, store, inbox }
    }

    fn claim(&self, keys: &[&str]) -> Arc<Claim> {
        let key = |name: &&str| LockKey::new("", name).unwrap();
        let others = keys[1..].iter().map(key);
        Arc::new(Claim::of(&self.inbox, key(&keys[0]), others, Sharing::Exclusive, ""))
    }

    async fn asks(&self, claim: &Arc<Claim>) -> Result<Acquire, StoreError> {
        self.asks_for(claim, TTL, Waiting::InLine).await
    }

    async fn asks_for(
        &self,
        claim: &Arc<Claim>,
        ttl: Duration,
        waiting: Waiting,
    ) -> Result<Acquire, StoreError> {
        self.store.acquire(&Acquiring::new(claim.clone(), ttl).waiting(waiting)).await
    }

    /// Takes what is free.
    async fn takes(&self, claim: &Arc<Claim>) {
        let answer = self.asks(claim).await;
        assert!(matches!(answer, Ok(Acquire::Acquired { .. })), "{answer:?}");
    }

    /// Waits for what is not.
    async fn waits(&self, claim: &Arc<Claim>) {
        let answer = self.asks(claim).await;
        assert!(matches!(answer, Ok(Acquire::Held { in_line: Some(_), .. })), "{answer:?}");
    }

    async fn releases(&self, claim: &Arc<Claim>) -> Result<Release, StoreError> {
        self.store.release(&[Releasing::new(claim.clone())]).await.remove(0)
    }

    async fn renews(&self, claim: &Arc<Claim>) -> Result<Renew, StoreError> {
        self.store.renew(&[Renewal::new(claim.clone(), TTL)]).await.remove(0)
    }

    /// What its inbox says to the claim while this is done.
    async fn news(&self, claim: &Claim, doing: impl Future<Output = ()>) -> News {
        let expected = self.inbox.expect(claim.token());
        doing.await;
        timeout(TTL, expected.news()).await.expect("news")
    }

    #[track_caller]
    fn nothing_is_left(&self) {
        for name in ["a", "b"] {
            assert_eq!(self.servers.line(name), [], "in the line of {name}");
        }
        assert!(self.store.shared.places().is_empty(), "places");
    }
}
