//! The store of a test: locks in memory, behind a scripted network.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Notify;

use super::network::{Fault, Network};
use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, MemoryStore, OwnerToken, ReleaseOutcome,
    ReleaseRequest, RenewOutcome, RenewRequest, Store, StoreError, Subscriber,
};
use crate::{FencingToken, HeldLock, Holder, HolderId};

/// The locks, and the network in front of them.
#[derive(Debug, Default)]
pub(super) struct ScriptedStore {
    pub(super) locks: MemoryStore,
    network: Arc<Network>,
    subscribers: Mutex<Vec<Wire>>,
    changed: Notify,
}

/// The notifications to a manager, as far as the network lets them through.
#[derive(Debug)]
struct Wire {
    subscriber: Weak<Subscriber>,
    /// The subscriber of the memory store, which drops its subscription along with this.
    _inner: Arc<Subscriber>,
}

impl ScriptedStore {
    pub(super) fn network(&self) -> &Network {
        &self.network
    }

    /// Ends the fault. Managers fetch the notifications that they missed, as after a reconnect.
    pub(super) fn mend(&self) {
        self.network.set(Fault::None);
        let subscribers: Vec<_> =
            self.wires().iter().filter_map(|wire| wire.subscriber.upgrade()).collect();
        subscribers.iter().for_each(|subscriber| subscriber.ask_all_again());
    }

    /// Notifies the manager of this claim that its lock is lost.
    pub(super) fn notify_lost(&self, token: OwnerToken) {
        let subscribers: Vec<_> =
            self.wires().iter().filter_map(|wire| wire.subscriber.upgrade()).collect();
        let subscriber =
            subscribers.iter().find(|subscriber| subscriber.id() == token.subscriber());
        if let Some(subscriber) = subscriber {
            subscriber.lost(token);
        }
    }

    /// Signalled at each change of the locks.
    pub(super) fn changed(&self) -> &Notify {
        &self.changed
    }

    /// Reads or changes the locks without the network.
    pub(super) fn directly<T>(&self, change: impl FnOnce(&MemoryStore) -> T) -> T {
        self.wires().retain(|wire| wire.subscriber.strong_count() > 0);
        let changed = change(&self.locks);
        self.changed.notify_waiters();
        changed
    }

    fn wires(&self) -> MutexGuard<'_, Vec<Wire>> {
        // No code inside can panic half-way, so a poisoned lock is still valid.
        self.subscribers.lock()
    }

    /// Runs a request on the memory store, which completes at once.
    fn run<T>(&self, request: impl FnOnce(&MemoryStore) -> Option<T>) -> Result<T, StoreError> {
        let reply = self.directly(request);
        reply.ok_or_else(|| StoreError::new("the memory store did not complete at once"))
    }
}

impl Store for ScriptedStore {
    async fn acquire(&self, requested_at: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        let request = || self.run(|locks| locks.acquire(requested_at).now_or_never());
        self.network.send(request).await??
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        let (told, contended) = (Arc::downgrade(subscriber), Arc::downgrade(subscriber));
        let (network, wanted_network) = (self.network.clone(), self.network.clone());
        let on_contended = move |name: Option<&str>| {
            let subscriber = contended.upgrade().filter(|_| wanted_network.delivers());
            if let (Some(subscriber), Some(name)) = (subscriber, name) {
                subscriber.contended(name);
            }
        };
        let on_notification = move |token, notification| {
            if let Some(subscriber) = told.upgrade().filter(|_| network.delivers()) {
                subscriber.notify(token, notification);
            }
        };
        let inner =
            Arc::new(Subscriber::with_network(subscriber.id(), on_contended, on_notification));
        self.locks.subscribe(&inner);
        self.wires().push(Wire { subscriber: Arc::downgrade(subscriber), _inner: inner });
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        let request = || self.run(|locks| locks.renew(renewals).now_or_never());
        each(self.network.send(request).await, renewals.len())
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        let request = || self.run(|locks| locks.release(releases).now_or_never());
        each(self.network.send(request).await, releases.len())
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        let request = || self.run(|locks| locks.holder(key).now_or_never());
        self.network.send(request).await??
    }

    async fn held_locks(&self, prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        let request = || self.run(|locks| locks.held_locks(prefix).now_or_never());
        self.network.send(request).await??
    }

    async fn force_release(&self, key: &LockKey, holder: &HolderId) -> Result<bool, StoreError> {
        let request = || self.run(|locks| locks.force_release(key, holder).now_or_never());
        self.network.send(request).await??
    }

    async fn mark_done(
        &self,
        claim: &Claim,
        lasts: Duration,
    ) -> Result<ReleaseOutcome, StoreError> {
        let request = || self.run(|locks| locks.mark_done(claim, lasts).now_or_never());
        self.network.send(request).await??
    }

    async fn next_token(&self, key: &LockKey) -> Result<Option<FencingToken>, StoreError> {
        let request = || self.run(|locks| locks.next_token(key).now_or_never());
        self.network.send(request).await??
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.network.send(|| ()).await
    }

    /// It has shared locks, permits and several keys.
    fn refuses_claim(&self, _claim: &Claim) -> Option<String> {
        None
    }

    fn refuses_done(&self) -> Option<String> {
        None
    }

    fn keeps_long_values(&self) -> bool {
        true
    }

    fn supports_companions(&self) -> bool {
        true
    }

    fn supports_downgrade(&self) -> bool {
        true
    }
}

/// The answers of a batch, or the same error for each of its requests.
fn each<T>(
    reply: Result<Result<Vec<Result<T, StoreError>>, StoreError>, StoreError>,
    requested_at: usize,
) -> Vec<Result<T, StoreError>> {
    match reply.and_then(|reply| reply) {
        Ok(answers) => answers,
        Err(error) => std::iter::repeat_with(|| Err(error.clone())).take(requested_at).collect(),
    }
}
