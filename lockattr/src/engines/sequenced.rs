//! Locks as queues of entries, in servers that agree on one order: ZooKeeper and etcd.
//!
//! No process grants a lock. A waiter reads from the queue whether it is its turn
//! (`queue_order.rs`), and watches the entry before its own. A claim for several keys enters all
//! queues in one step, and holds its locks once it has its turn in each, so no process is
//! overtaken. The entries belong to a session of the store, which the ensemble's own client keeps
//! alive. A lease is shorter than the session: the store itself ends it (`shared.rs`), as long as
//! this process lives.

mod acquire;
mod claim_record;
mod claims;
mod contention;
mod delegate;
#[cfg(fuzzing)]
pub(super) mod fuzzed;
mod gate;
mod held_locks;
mod queue_order;
mod recipe;
mod release;
mod renew;
mod shared;
#[cfg(test)]
mod tests;
mod thread;
mod value;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, Store, StoreError, Subscriber,
};
use crate::{HeldLock, HeldLocks, Holder, HolderId};
pub(crate) use delegate::sequenced_store;
pub(crate) use gate::Permit;
pub(crate) use recipe::{
    ClaimEntries, Entered, Entry, EntryValue, LockQueue, LockQueues, LockRecipe, NewEntry,
};
use shared::Shared;
pub(crate) use thread::{StoreThread, ThreadGuard};
#[cfg(feature = "zookeeper")]
pub(crate) use value::entry_value;

/// The delay before a failed removal is retried.
const RETRY_REMOVAL_AFTER: Duration = Duration::from_millis(200);

/// A store over one ensemble of servers.
#[derive(Debug)]
pub(crate) struct SequencedStore<E: LockRecipe> {
    shared: Arc<Shared<E>>,
}

impl<E: LockRecipe> SequencedStore<E> {
    pub(crate) fn new(recipe: E) -> Self {
        Self { shared: Arc::new(Shared::new(recipe)) }
    }
}

/// Why a lock cannot outlive its process here.
const ENDS_WITH_THE_SESSION: &str = "in ZooKeeper and etcd, a lock ends with the session of its process, so no key stays done when \
     the process ends: use a store with leases, which are Redis, PostgreSQL and MySQL without \
     `lock=session`";

impl<E: LockRecipe> Store for SequencedStore<E> {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        self.try_acquire(request).await
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.shared.subscribers.add(subscriber);
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        self.renew_all(renewals).await
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        self.release_all(releases).await
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        let queue = self.shared.recipe.queue(key).await?;
        self.shared.holder(key, &queue).await
    }

    async fn held_locks(&self, prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        Ok(self.list_held_locks(prefix).await?.locks)
    }

    async fn list_held_locks(&self, prefix: &str) -> Result<HeldLocks, StoreError> {
        self.shared.held_locks(prefix).await
    }

    async fn force_release(&self, key: &LockKey, holder: &HolderId) -> Result<bool, StoreError> {
        self.shared.force_release(key, *holder).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.shared.recipe.ping().await
    }

    /// An entry ends with the session, and `max_ttl` is at least half of the session timeout.
    fn entry_lifetime(&self, _ttl: Duration) -> Duration {
        self.shared.recipe.max_ttl() * 2
    }

    fn longest_ttl(&self) -> Duration {
        self.shared.recipe.max_ttl()
    }

    fn notes_departures(&self) -> bool {
        true
    }

    fn refuses_done(&self) -> Option<String> {
        Some(ENDS_WITH_THE_SESSION.to_owned())
    }

    fn refuses_claim(&self, claim: &Claim) -> Option<String> {
        self.shared.recipe.refuses(claim)
    }
}

impl<E: LockRecipe> Drop for SequencedStore<E> {
    fn drop(&mut self) {
        self.shared.stop();
    }
}
