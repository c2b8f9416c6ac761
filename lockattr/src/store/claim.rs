//! Which caller asks for what.

use std::fmt::{self, Debug};
use std::sync::{Arc, OnceLock};

use super::attempts::Attempts;
use super::departure::Departure;
use super::queued_state::QueuedState;
use super::{LockKey, Sharing, Subscriber};
use crate::lock::key::{named, sorted_unique};
use crate::lock::token::OwnerToken;
use crate::platform::entropy::random_bits;

/// Which caller asks for what: one acquisition, from its first attempt to its release.
///
/// `Debug` shows the keys only, because the value would allow a reader of the log to release the lock.
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
    /// The value that replaces `value` once an exclusive claim becomes a shared one.
    shared_value: OnceLock<String>,
    /// Whether it may wait in the store's queue.
    pub(super) queued: QueuedState,
    /// Its attempts, where it asks several servers of which each decides for itself.
    pub(super) attempts: Attempts,
    pub(super) departure: Departure,
    /// As whom it waits in the queue, if it is one of several attempts, or a part.
    pub(super) queued_as: Option<Arc<Self>>,
}

/// Separates the token from the label of a claim that shares its lock.
const SHARED: &str = " mode=shared ";

impl Claim {
    /// A claim with an owner token of its own, and a label that names the caller. It stands alone: no
    /// subscriber learns of it.
    pub fn new(key: LockKey, label: &str) -> Self {
        Self::with(random_bits(), Arc::new([key]), Sharing::Exclusive, label)
    }

    /// A claim as the manager with this subscriber makes it: for `key` and all of `others` together,
    /// equal ones counted once, shared as `sharing` says.
    ///
    /// For tests of a [`Store`](super::Store). [`Subscriber`] has an example.
    pub fn of(
        subscriber: &Subscriber,
        key: LockKey,
        others: impl IntoIterator<Item = LockKey>,
        sharing: Sharing,
        label: &str,
    ) -> Self {
        let keys = sorted_unique(others.into_iter().chain([key]).collect());
        Self::with(subscriber.id(), keys.into(), sharing, label)
    }

    /// A claim of the manager with this subscriber for all of `keys`, of which there is at least one.
    pub(crate) fn with(
        subscriber: u64,
        keys: Arc<[LockKey]>,
        sharing: Sharing,
        label: &str,
    ) -> Self {
        Self::labelled(subscriber, keys, sharing, label.len(), |value| value.push_str(label))
    }

    /// The same; `label` writes a label of about this length into the value, without a copy.
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
        let (shared_value, queued, attempts, departure) = Default::default();
        Self { keys, token, sharing, value, shared_value, queued, attempts, departure, queued_as }
    }

    /// The same owner's claim, for a caller that has no `Arc` of it.
    pub(super) fn copied(&self) -> Self {
        Self::owned_by(self.token, self.keys.clone(), self.sharing, self.value.clone(), None)
    }

    /// The part of this acquisition that concerns `keys`.
    #[cfg(feature = "redis")]
    pub(crate) fn part(self: &Arc<Self>, keys: Box<[LockKey]>) -> Self {
        let value = self.value.clone();
        Self::owned_by(self.token, keys.into(), self.sharing, value, Some(self.clone()))
    }

    /// The same acquisition by another owner, which waits in the queue in the place of this one.
    pub(super) fn as_another_owner(self: &Arc<Self>) -> Self {
        let label = self.value.split_once(' ').map_or("", |(_, label)| label);
        let token = OwnerToken::random(self.token.subscriber());
        let value = [&token.to_string(), " ", label].concat();
        Self::owned_by(token, self.keys.clone(), self.sharing, value, Some(self.clone()))
    }

    /// As whom it waits in the queue: notifications for it go to that claim.
    pub(crate) fn queued_as(&self) -> &Self {
        self.queued_as.as_deref().unwrap_or(self)
    }

    /// What is asked for; the first of them, where there are several.
    pub fn key(&self) -> &LockKey {
        &self.keys[0]
    }

    /// All keys that it locks. They are acquired, renewed and released as one.
    pub fn keys(&self) -> &[LockKey] {
        &self.keys
    }

    /// The same, without a copy.
    pub(crate) fn shared_keys(&self) -> &Arc<[LockKey]> {
        &self.keys
    }

    /// With whom the lock may be shared. This changes once at most: an exclusive claim may become a shared
    /// one, if the store [supports that](super::Store::supports_downgrade).
    pub fn sharing(&self) -> Sharing {
        match self.shared_value.get() {
            Some(_) => Sharing::Shared,
            None => self.sharing,
        }
    }

    /// Turns the exclusive claim into a shared one. The store learns that with the next
    /// [renewal](super::Store::renew).
    ///
    /// A manager does this for a writer that admits readers of its process. It is public for tests
    /// of a [`Store`](super::Store) that [supports it](super::Store::supports_downgrade).
    ///
    /// ```
    /// use lockattr::store::{Claim, LockKey, Sharing};
    ///
    /// let claim = Claim::new(LockKey::new("lock:", "page:1")?, "");
    /// claim.share();
    /// assert_eq!(claim.sharing(), Sharing::Shared);
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    pub fn share(&self) {
        let (token, label) = self.value.split_once(' ').unwrap_or((&self.value, ""));
        self.shared_value.get_or_init(|| [token, SHARED, label].concat());
    }

    /// The token that proves ownership of the lock.
    pub fn token(&self) -> OwnerToken {
        self.token
    }

    /// What to store under the key: the token, then the holder's label, which
    /// [`Holder::from_value`](crate::Holder::from_value) reads. It changes only when
    /// [`sharing`](Self::sharing) does, so a store may compare it as a whole.
    pub fn value(&self) -> &str {
        self.shared_value.get().unwrap_or(&self.value)
    }

    /// The value, and whether the claim was exclusive and is now shared. One read, so the two agree.
    #[cfg(feature = "redis")]
    pub(crate) fn value_now(&self) -> (&str, bool) {
        match self.shared_value.get() {
            Some(value) => (value, true),
            None => (&self.value, false),
        }
    }

    pub(crate) fn named(&self) -> String {
        named(&self.keys)
    }
}

impl Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("keys", &self.keys).finish_non_exhaustive()
    }
}
