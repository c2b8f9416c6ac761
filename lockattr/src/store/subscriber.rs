//! Notifications: what a store sends to a manager about its claims.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::FencingToken;
use crate::lock::token::OwnerToken;
use crate::platform::entropy::random_bits;
use crate::platform::sync::{Mutex, MutexGuard};
use crate::platform::sync::{NameHasher, SHARDS};

/// Receives the notifications of a manager's claims.
///
/// A store with wait queues gets it through [`Store::subscribe`](super::Store::subscribe), which may be called with the
/// same subscriber more than once.
///
/// A test of a store makes one by hand:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use std::time::Duration;
/// use lockattr::store::{
///     AcquireOutcome, AcquireRequest, Claim, LockKey, MemoryStore, Notification, ReleaseRequest, Sharing, Store,
///     Subscriber, Waiting,
/// };
///
/// let store = MemoryStore::new();
/// let subscriber = Arc::new(Subscriber::new(|_name| {}));
/// store.subscribe(&subscriber);
/// let claim = || -> Result<_, lockattr::Error> {
///     let key = LockKey::new("lock:", "stock")?;
///     Ok(Arc::new(Claim::of(&subscriber, key, [], Sharing::Exclusive, "service=test")))
/// };
/// let (first, second, ttl) = (claim()?, claim()?, Duration::from_secs(10));
///
/// let subscription = subscriber.subscribe(second.token());
/// store.acquire(&AcquireRequest::new(first.clone(), ttl)).await?;
/// let answer = store.acquire(&AcquireRequest::new(second.clone(), ttl).waiting(Waiting::Queued)).await?;
/// assert!(matches!(answer, AcquireOutcome::Held { queued: Some(_), .. }));
/// store.release(&[ReleaseRequest::new(first)]).await;
/// assert!(matches!(subscription.next().await, Notification::Granted(_)));
/// # Ok(())
/// # }
/// ```
pub struct Subscriber {
    id: u64,
    /// By the tokens' last bits, so that claims seldom meet.
    subscribed: [Shard; SHARDS],
    /// How many claims are subscribed.
    waiting: AtomicUsize,
    on_contended: OnContended,
    on_lost: OnLost,
    on_unclaimed: OnLost,
    /// In a simulated or scripted server: sends the notification over its network.
    #[cfg(any(feature = "__sim", feature = "testing"))]
    on_notification: Option<OnNotification>,
}

/// The subscriptions of some claims.
type Shard = Mutex<HashMap<OwnerToken, Arc<Slot>, NameHasher>>;

/// Called with each notification and the token of its claim.
#[cfg(any(feature = "__sim", feature = "testing"))]
type OnNotification = Box<dyn Fn(OwnerToken, Notification) + Send + Sync>;

/// Called with the token of a claim that lost its lock, or that was granted one and no longer waits.
type OnLost = Box<dyn Fn(OwnerToken) + Send + Sync>;

/// Called with the name of a lock that is contended.
type OnContended = Box<dyn Fn(Option<&str>) + Send + Sync>;

/// The notification of one claim that was not read yet.
#[derive(Debug, Default)]
struct Slot {
    last: Mutex<Option<Notification>>,
    arrived: Notify,
}

/// What a store sends to a claim that waits in its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notification {
    /// It has the lock now.
    Granted(Grant),
    /// The store may have forgotten the claim, or the holder's lease ends: ask again at this instant.
    AskAgain(Instant),
}

/// A lock that was handed to the first waiter in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// The number of this acquisition.
    pub fencing: FencingToken,
    /// An instant that is certainly not after the start of the lease.
    pub since: Instant,
    /// Whether more claims wait behind this one.
    pub contended: bool,
}

impl Grant {
    /// The lease that began no earlier than `since`.
    pub fn new(fencing: FencingToken, since: Instant, contended: bool) -> Self {
        Self { fencing, since, contended }
    }
}

impl Subscriber {
    /// A subscriber. `on_contended` is called with the name of each lock of its manager that other processes now wait for,
    /// or with `None` if that may be any of them.
    pub fn new(on_contended: impl Fn(Option<&str>) + Send + Sync + 'static) -> Self {
        let hasher = NameHasher::default();
        let shard = |_| Mutex::new(HashMap::with_hasher(hasher.clone()));
        Self {
            id: random_bits(),
            subscribed: std::array::from_fn(shard),
            waiting: AtomicUsize::new(0),
            on_contended: Box::new(on_contended),
            on_lost: Box::new(|_token| {}),
            on_unclaimed: Box::new(|_token| {}),
            #[cfg(any(feature = "__sim", feature = "testing"))]
            on_notification: None,
        }
    }

    /// The subscriber with this number as a simulated or scripted server sees it: it sends each notification over a
    /// network.
    #[cfg(any(feature = "__sim", feature = "testing"))]
    #[doc(hidden)]
    pub fn with_network(
        id: u64,
        on_contended: impl Fn(Option<&str>) + Send + Sync + 'static,
        on_notification: impl Fn(OwnerToken, Notification) + Send + Sync + 'static,
    ) -> Self {
        Self { id, on_notification: Some(Box::new(on_notification)), ..Self::new(on_contended) }
    }

    /// The same; `on_lost` is called with the token of each claim that has lost its lock before its lease was over.
    #[must_use]
    pub fn on_lost(mut self, on_lost: impl Fn(OwnerToken) + Send + Sync + 'static) -> Self {
        self.on_lost = Box::new(on_lost);
        self
    }

    /// The same; `on_unclaimed` is called with the token of each claim that was granted its lock and no longer waits. The
    /// lock must then be released at once.
    #[must_use]
    pub fn on_unclaimed(
        mut self,
        on_unclaimed: impl Fn(OwnerToken) + Send + Sync + 'static,
    ) -> Self {
        self.on_unclaimed = Box::new(on_unclaimed);
        self
    }

    /// How many claims wait for a notification, or are about to.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// The number with which the tokens of its manager's claims begin.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The claim with this token has the lock. If it no longer waits, its manager releases the lock at once.
    pub fn granted(&self, token: OwnerToken, grant: Grant) {
        self.notify(token, Notification::Granted(grant));
    }

    /// The claim with this token has to ask again at `at`, unless another notification comes first.
    pub fn ask_again(&self, token: OwnerToken, at: Instant) {
        self.notify(token, Notification::AskAgain(at));
    }

    /// Notifications may have been lost: all claims that wait ask again now, and any lock may be contended.
    pub fn ask_all_again(&self) {
        (self.on_contended)(None);
        let mut slots = Vec::new();
        for shard in &self.subscribed {
            slots.extend(locked(shard).iter().map(|(token, slot)| (*token, slot.clone())));
        }
        // Sorted, because the order of a map differs from run to run, and a simulated run has to be repeatable.
        slots.sort_unstable_by_key(|(token, _)| token.order());
        let now = Instant::now();
        slots.iter().for_each(|(_, slot)| slot.put(Notification::AskAgain(now)));
    }

    /// Claims may have begun to wait for any lock while the store did not report them.
    #[cfg(feature = "postgres")]
    pub(crate) fn any_may_be_contended(&self) {
        (self.on_contended)(None);
    }

    /// The claim with this token has certainly lost its lock, although its lease is not over. A store calls this when it
    /// learns of the loss before the next renewal does.
    pub fn lost(&self, token: OwnerToken) {
        (self.on_lost)(token);
    }

    /// Other processes wait for the lock of this name, which a claim of this manager holds.
    pub fn contended(&self, name: &str) {
        (self.on_contended)(Some(name));
    }

    /// Subscribes the claim with this token until the result is dropped. Call it before the store is asked to queue the
    /// claim.
    pub fn subscribe(self: &Arc<Self>, token: OwnerToken) -> Subscription {
        let slot = Arc::<Slot>::default();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.subscribed(token).insert(token, slot.clone());
        Subscription { subscriber: self.clone(), token, slot }
    }

    /// Delivers a notification to the claim with this token.
    pub(crate) fn notify(&self, token: OwnerToken, notification: Notification) {
        #[cfg(any(feature = "__sim", feature = "testing"))]
        if let Some(on_notification) = &self.on_notification {
            return on_notification(token, notification);
        }
        let slot = self.subscribed(token).get(&token).cloned();
        match slot {
            Some(slot) => slot.put(notification),
            None if matches!(notification, Notification::Granted(_)) => (self.on_unclaimed)(token),
            None => {}
        }
    }

    fn subscribed(
        &self,
        token: OwnerToken,
    ) -> MutexGuard<'_, HashMap<OwnerToken, Arc<Slot>, NameHasher>> {
        // The remainder fits.
        locked(&self.subscribed[(token.order() % SHARDS as u128) as usize])
    }

    /// The old name of [`contended`](Self::contended).
    #[deprecated(note = "renamed to `contended`")]
    #[doc(hidden)]
    pub fn wanted(&self, name: &str) {
        self.contended(name);
    }

    /// The old name of [`subscribe`](Self::subscribe).
    #[deprecated(note = "renamed to `subscribe`")]
    #[doc(hidden)]
    pub fn expect(self: &Arc<Self>, token: OwnerToken) -> Subscription {
        self.subscribe(token)
    }
}

fn locked(shard: &Shard) -> MutexGuard<'_, HashMap<OwnerToken, Arc<Slot>, NameHasher>> {
    // No panic can leave this half-changed, so a poisoned mutex is safe to use.
    shard.lock()
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

impl Slot {
    fn put(&self, notification: Notification) {
        *self.last() = Some(notification);
        self.arrived.notify_one();
    }

    fn last(&self) -> MutexGuard<'_, Option<Notification>> {
        self.last.lock()
    }
}

/// The subscription of one claim. [`Subscriber`] has an example.
#[derive(Debug)]
#[must_use = "dropping it unsubscribes the claim"]
pub struct Subscription {
    subscriber: Arc<Subscriber>,
    token: OwnerToken,
    slot: Arc<Slot>,
}

impl Subscription {
    /// Waits for the next notification. If several came since the last call, only the last of them is returned.
    ///
    /// # Cancel safety
    ///
    /// Dropping this future loses no notification.
    pub async fn next(&self) -> Notification {
        loop {
            if let Some(notification) = self.slot.last().take() {
                return notification;
            }
            self.slot.arrived.notified().await;
        }
    }

    /// The old name of [`next`](Self::next).
    ///
    /// # Cancel safety
    ///
    /// As [`next`](Self::next).
    #[deprecated(note = "renamed to `next`")]
    #[doc(hidden)]
    pub async fn news(&self) -> Notification {
        self.next().await
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.subscriber.subscribed(self.token).remove(&self.token);
        self.subscriber.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
