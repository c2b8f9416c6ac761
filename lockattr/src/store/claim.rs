//! Which caller asks for what.

use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::{LockKey, Sharing, Subscriber, Waiting};
use crate::lock::key::{in_one_order, named};
use crate::lock::token::OwnerToken;
use crate::platform::entropy::random_bits;

/// Which caller asks for what: one acquisition, from its first attempt to its release.
///
/// `Debug` shows the keys only: who reads the value could release the lock.
///
/// ```
/// use lockattr::store::{Claim, LockKey};
///
/// let key = LockKey::new("lock:", "product:42")?;
/// let claim = Claim::new(key, "service=orders host=web-3");
/// assert!(claim.value().ends_with(" service=orders host=web-3"));
/// # Ok::<(), lockattr::Error>(())
/// ```
pub struct Claim {
    keys: Arc<[LockKey]>,
    token: OwnerToken,
    sharing: Sharing,
    value: String,
    /// The value that replaces `value` once the claim shares a lock that it had alone.
    shared_value: OnceLock<String>,
    /// Zero unless it may wait in the store's queue. Then twice the TTL in milliseconds; the lowest bit is
    /// set if its turn is only told to it.
    queued: AtomicU64,
    /// Which of several servers have answered its release, a bit for each, and whether any of them
    /// loudly.
    released_on: AtomicU64,
    attempts: Mutex<Attempts>,
    /// As whom it waits in the queue, if it is one of several attempts, or a part.
    queued_as: Option<Arc<Self>>,
}

/// Between the token and the label of a claim that shares its lock.
const SHARED: &str = " mode=shared ";

/// In [`Claim::released_on`].
const NOTIFIED: u64 = 1 << 63;

/// The attempts of a claim that asks each time as another owner.
#[derive(Default)]
struct Attempts {
    begun: bool,
    /// None for the first, which is the claim itself.
    last: Option<Arc<Claim>>,
    /// Whether the last may have something still.
    queued: bool,
}

impl Claim {
    /// A claim with an owner token of its own, and a label that names the caller. It stands alone: no
    /// subscriber learns of it.
    pub fn new(key: LockKey, label: &str) -> Self {
        Self::with(random_bits(), Arc::new([key]), Sharing::Exclusive, label)
    }

    /// A claim as the manager with this subscriber makes it: for `key` and all of `others` together,
    /// equal ones counted once, shared as `sharing` says.
    ///
    /// For tests of a [`Store`](super::Store); the example stands at [`Subscriber`].
    pub fn of(
        subscriber: &Subscriber,
        key: LockKey,
        others: impl IntoIterator<Item = LockKey>,
        sharing: Sharing,
        label: &str,
    ) -> Self {
        let keys = in_one_order(others.into_iter().chain([key]).collect());
        Self::with(subscriber.id(), keys.into(), sharing, label)
    }

    /// A claim of the manager with `inbox` for all of `keys`, of which there is at least one.
    pub(crate) fn with(
        subscriber: u64,
        keys: Arc<[LockKey]>,
        sharing: Sharing,
        label: &str,
    ) -> Self {
        Self::labelled(subscriber, keys, sharing, label.len(), |value| value.push_str(label))
    }

    /// The same with a label that is written where it stays, of about this length.
    pub(crate) fn labelled(
        subscriber: u64,
        keys: Arc<[LockKey]>,
        sharing: Sharing,
        length: usize,
        label: impl FnOnce(&mut String),
    ) -> Self {
        let token = OwnerToken::random(subscriber);
        let mut value = String::with_capacity(48 + length);
        value.push_str(token.digits().as_str());
        value.push_str(match sharing {
            Sharing::Exclusive => " ",
            Sharing::Shared => SHARED,
            Sharing::Permits(_) => " mode=permits ",
        });
        label(&mut value);
        Self::owned_by(token, keys, sharing, value, None)
    }

    fn owned_by(
        token: OwnerToken,
        keys: Arc<[LockKey]>,
        sharing: Sharing,
        value: String,
        queued_as: Option<Arc<Self>>,
    ) -> Self {
        let (shared_value, queued, attempts, released_on) = Default::default();
        Self { keys, token, sharing, value, shared_value, queued, released_on, attempts, queued_as }
    }

    /// The same acquisition of some of its keys.
    #[cfg(feature = "redis")]
    pub(crate) fn part(self: &Arc<Self>, keys: Box<[LockKey]>) -> Self {
        let value = self.value.clone();
        Self::owned_by(self.token, keys.into(), self.sharing, value, Some(self.clone()))
    }

    /// What is asked for; the first of them, where there are several.
    pub fn key(&self) -> &LockKey {
        &self.keys[0]
    }

    /// All that is asked for: it is taken, renewed and given back as one.
    pub fn keys(&self) -> &[LockKey] {
        &self.keys
    }

    /// The same, for a claim that asks for them again.
    pub(crate) fn shared_keys(&self) -> &Arc<[LockKey]> {
        &self.keys
    }

    /// With whom the lock may be shared. This changes once at most: a claim that had its lock alone may
    /// share it from then on, where the store [knows such claims](super::Store::supports_downgrade).
    pub fn sharing(&self) -> Sharing {
        match self.shared_value.get() {
            Some(_) => Sharing::Shared,
            None => self.sharing,
        }
    }

    /// The claim has its lock alone, and shares it from now on. The store learns that with the next renewal.
    pub(crate) fn share(&self) {
        let (token, label) = self.value.split_once(' ').unwrap_or((&self.value, ""));
        self.shared_value.get_or_init(|| [token, SHARED, label].concat());
    }

    /// What proves the lock ours.
    pub fn token(&self) -> OwnerToken {
        self.token
    }

    /// What to store under the key: the token, then the holder's label, which
    /// [`Holder::from_value`](crate::Holder::from_value) reads. The same as long as
    /// [`sharing`](Self::sharing) is, so a store may compare it as a whole.
    pub fn value(&self) -> &str {
        self.shared_value.get().unwrap_or(&self.value)
    }

    /// Its value, and whether it shares a lock that it had alone. One read, so the two agree.
    #[cfg(feature = "redis")]
    pub(crate) fn value_now(&self) -> (&str, bool) {
        match self.shared_value.get() {
            Some(value) => (value, true),
            None => (&self.value, false),
        }
    }

    /// The keys as an error names them.
    pub(crate) fn named(&self) -> String {
        named(&self.keys)
    }

    /// The claim as another owner than last time, for a store whose servers may execute what one
    /// attempt asked after they have executed what a later one did: itself the first time, then one
    /// with a new token, that waits in the queue in the same place.
    pub(crate) fn next_attempt(self: &Arc<Self>) -> Arc<Self> {
        let mut attempts = self.attempts();
        attempts.queued = true;
        if !std::mem::replace(&mut attempts.begun, true) {
            return self.clone();
        }
        let label = self.value.split_once(' ').map_or("", |(_, label)| label);
        let token = OwnerToken::random(self.token.subscriber());
        let value = [&token.to_string(), " ", label].concat();
        let keys = self.keys.clone();
        let next = Self::owned_by(token, keys, self.sharing, value, Some(self.clone()));
        attempts.last.insert(Arc::new(next)).clone()
    }

    /// The attempt that was begun last: whose the lock is, if it was granted.
    pub(crate) fn last_attempt(self: &Arc<Self>) -> Arc<Self> {
        self.attempts().last.clone().unwrap_or_else(|| self.clone())
    }

    /// The same, unless it has nothing any more: there was none, or it was given back.
    pub(crate) fn queued_attempt(self: &Arc<Self>) -> Option<Arc<Self>> {
        let queued = self.attempts().queued;
        queued.then(|| self.last_attempt())
    }

    /// What its last attempt may have got was given back.
    pub(crate) fn end_attempt(&self) {
        self.attempts().queued = false;
    }

    /// This one of several servers has answered its release.
    pub(crate) fn note_released(&self, node: usize, quietly: bool) {
        let notified = if quietly { 0 } else { NOTIFIED };
        self.released_on.fetch_or((1 << node) | notified, Ordering::AcqRel);
    }

    /// Whether this one has, and if so, whether that was quiet.
    pub(crate) fn released_on(&self, node: usize) -> Option<bool> {
        let bits = self.released_on.load(Ordering::Acquire);
        (bits & (1 << node) != 0).then_some(bits & NOTIFIED == 0)
    }

    /// As whom it waits in the queue: notifications for it go to that claim.
    pub(crate) fn queued_as(&self) -> &Self {
        self.queued_as.as_deref().unwrap_or(self)
    }

    /// It may wait in the store's queue from now on.
    pub(crate) fn enters_queue(&self, ttl: Duration, waiting: Waiting) {
        let halves = u64::try_from(ttl.as_millis()).map_or(u64::MAX, |ms| ms.saturating_mul(2));
        let told = u64::from(waiting != Waiting::Queued);
        self.queued_as().queued.store((halves & !1) | told, Ordering::Release);
    }

    /// Its turn has come: it does not wait in the queue any more. One that is asked to come and take
    /// several locks may do so in another line still.
    pub(crate) fn left_queue(&self) {
        if self.queued.load(Ordering::Acquire) & 1 == 0 {
            self.queued.store(0, Ordering::Release);
        }
    }

    /// What it asked for, and how it waits, where it may still wait in the queue.
    pub(crate) fn queued(&self) -> Option<(Duration, Waiting)> {
        let halves = self.queued_as().queued.load(Ordering::Acquire);
        let told = halves & 1 == 1;
        let waiting = if told { Waiting::Told { again: true } } else { Waiting::Queued };
        (halves > 0).then(|| (Duration::from_millis(halves / 2), waiting))
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        // Nothing in there can panic half-way, so a poisoned lock is still good.
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("keys", &self.keys).finish_non_exhaustive()
    }
}
