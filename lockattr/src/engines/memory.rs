//! The store inside the process: for examples, unit tests and single-process programs.

mod locks;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::platform::sync::Mutex;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, Notification, OwnerToken, ReleaseOutcome,
    ReleaseRequest, RenewOutcome, RenewRequest, Store, StoreError, Subscriber, Subscribers,
};
use crate::{FencingToken, HeldLock, Holder, HolderId};
use locks::Locks;

/// Locks in the memory of this process, on tokio's clock, so that a paused clock drives them.
///
/// Each `MemoryStore` is separate, as is each manager connected to `memory://`. Managers that
/// contend with each other share one:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use std::sync::Arc;
/// use lockattr::store::MemoryStore;
/// use lockattr::{LockManager, LockOptions};
///
/// let store = Arc::new(MemoryStore::new());
/// let here = LockManager::builder().store(store.clone()).build()?;
/// let there = LockManager::builder().store(store).build()?;
///
/// let _held = here.acquire("stock", LockOptions::new()).await?;
/// assert!(there.try_acquire("stock", LockOptions::new()).await?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct MemoryStore {
    locks: Mutex<Locks>,
    subscribers: Subscribers,
}

/// A notification to send after the locks are unlocked.
enum Message {
    Notification(Arc<Subscriber>, OwnerToken, Notification),
    Contended(Arc<Subscriber>, Box<str>),
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, change: impl FnOnce(&mut Locks, &mut Notifier<'_>) -> T) -> T {
        let mut notifier = Notifier { store: self, now: Instant::now(), messages: Vec::new() };
        let changed = {
            // No panic can leave this half-changed, so a poisoned mutex is safe to use.
            let mut locks = self.locks.lock();
            change(&mut locks, &mut notifier)
        };
        for message in notifier.messages {
            match message {
                Message::Notification(subscriber, token, notification) => {
                    subscriber.notify(token, notification);
                }
                Message::Contended(subscriber, name) => subscriber.contended(&name),
            }
        }
        changed
    }
}

/// The notifications of a change, and when it happens.
struct Notifier<'a> {
    store: &'a MemoryStore,
    now: Instant,
    messages: Vec<Message>,
}

impl Notifier<'_> {
    /// Notifies the claim's subscriber; `false` if its manager is gone.
    fn notify(&mut self, claim: &Claim, notification: Notification) -> bool {
        let subscriber = self.subscriber(claim);
        let delivered = subscriber.is_some();
        self.messages.extend(subscriber.map(|subscriber| {
            Message::Notification(subscriber, claim.queued_as().token(), notification)
        }));
        delivered
    }

    /// Notifies the holder that others wait.
    fn notify_contended(&mut self, holder: &Claim, name: &str) {
        let subscriber = self.subscriber(holder);
        self.messages
            .extend(subscriber.map(|subscriber| Message::Contended(subscriber, name.into())));
    }

    fn subscriber(&self, claim: &Claim) -> Option<Arc<Subscriber>> {
        self.store.subscribers.get(claim.token().subscriber())
    }
}

impl Store for MemoryStore {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        Ok(self.with(|locks, notifier| locks.acquire(request, notifier)))
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.subscribers.add(subscriber);
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        let renew = |locks: &mut Locks, notifier: &mut Notifier<'_>| {
            renewals.iter().map(|renewal| Ok(locks.renew(renewal, notifier))).collect()
        };
        self.with(renew)
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        let release = |locks: &mut Locks, notifier: &mut Notifier<'_>| {
            releases.iter().map(|release| Ok(locks.release(release, notifier))).collect()
        };
        self.with(release)
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        Ok(self.with(|locks, notifier| locks.holder(key, notifier.now)))
    }

    /// All of them: only this program writes here, and only names of keys.
    async fn held_locks(&self, prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        Ok(self.with(|locks, notifier| locks.held_locks(prefix, notifier.now)))
    }

    async fn force_release(&self, key: &LockKey, holder: &HolderId) -> Result<bool, StoreError> {
        Ok(self.with(|locks, notifier| locks.force_release(key, *holder, notifier)))
    }

    async fn mark_done(
        &self,
        claim: &Claim,
        lasts: Duration,
    ) -> Result<ReleaseOutcome, StoreError> {
        Ok(self.with(|locks, notifier| locks.mark_done(claim, lasts, notifier)))
    }

    fn supports_companions(&self) -> bool {
        true
    }

    fn supports_downgrade(&self) -> bool {
        true
    }

    async fn next_token(&self, _key: &LockKey) -> Result<Option<FencingToken>, StoreError> {
        Ok(Some(self.with(|locks, _| locks.next_token(None))))
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
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
}
