//! Who asks for what.

use std::fmt::{self, Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Inbox, LockKey, Waiting};
use crate::key::{in_one_order, named};
use crate::token::OwnerToken;

/// With whom a claim shares its lock.
///
/// ```
/// use lockattr::store::Sharing;
///
/// assert_eq!(Sharing::default(), Sharing::Exclusive);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// With nobody.
    #[default]
    Exclusive,
    /// With any number of others that share.
    Shared,
    /// With others that take a permit, at most so many of them altogether.
    Permits(u32),
}

/// Who asks for what: one acquisition, from its first attempt to its release.
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
    keys: Box<[LockKey]>,
    token: OwnerToken,
    sharing: Sharing,
    value: String,
    /// While it may stand in the store's line: the TTL that it asked for there, in half
    /// milliseconds, and one more if it is only told; else zero.
    in_line: AtomicU64,
}

impl Claim {
    /// A claim with an owner token of its own, and a label that says who asks. It stands alone: no
    /// inbox hears of it.
    pub fn new(key: LockKey, label: &str) -> Self {
        Self::with(rand::random(), Box::new([key]), Sharing::Exclusive, label)
    }

    /// A claim as the manager with this inbox makes it: for `key` and all of `others` together,
    /// equal ones counted once, shared as `sharing` says.
    ///
    /// For tests of a [`Store`](super::Store); the example stands at [`Inbox`].
    pub fn of(
        inbox: &Inbox,
        key: LockKey,
        others: impl IntoIterator<Item = LockKey>,
        sharing: Sharing,
        label: &str,
    ) -> Self {
        let keys = in_one_order(others.into_iter().chain([key]).collect());
        Self::with(inbox.id(), keys.into(), sharing, label)
    }

    /// A claim of the manager with `inbox` for all of `keys`, of which there is at least one.
    pub(crate) fn with(inbox: u64, keys: Box<[LockKey]>, sharing: Sharing, label: &str) -> Self {
        let token = OwnerToken::random(inbox);
        let mut value = String::with_capacity(48 + label.len());
        // Writing to a string cannot fail.
        let _never = match sharing {
            Sharing::Exclusive => write!(value, "{token} {label}"),
            Sharing::Shared => write!(value, "{token} mode=shared {label}"),
            Sharing::Permits(_) => write!(value, "{token} mode=permits {label}"),
        };
        Self { keys, token, sharing, value, in_line: AtomicU64::new(0) }
    }

    /// What is asked for; the first of them, where there are several.
    pub fn key(&self) -> &LockKey {
        &self.keys[0]
    }

    /// All that is asked for: it is taken, renewed and given back as one.
    pub fn keys(&self) -> &[LockKey] {
        &self.keys
    }

    /// With whom the lock may be shared.
    pub fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// What proves the lock ours.
    pub fn token(&self) -> OwnerToken {
        self.token
    }

    /// What to store under the key: the token, then the holder's label, which
    /// [`Holder::from_value`](crate::Holder::from_value) reads. The same for the whole life of the
    /// claim, so a store may compare it as a whole.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The keys as an error names them.
    pub(crate) fn named(&self) -> String {
        named(&self.keys)
    }

    /// It may stand in the store's line from now on.
    pub(crate) fn enters_line(&self, ttl: Duration, waiting: Waiting) {
        let halves = u64::try_from(ttl.as_millis()).map_or(u64::MAX, |ms| ms.saturating_mul(2));
        let told = u64::from(waiting != Waiting::InLine);
        self.in_line.store((halves & !1) | told, Ordering::Release);
    }

    /// Its turn has come: it does not stand in line any more. One that is told to come and take
    /// several locks may do so in another line still.
    pub(crate) fn left_line(&self) {
        if self.in_line.load(Ordering::Acquire) & 1 == 0 {
            self.in_line.store(0, Ordering::Release);
        }
    }

    /// What it asked for, and how it waits, where it may still stand in line.
    pub(crate) fn in_line(&self) -> Option<(Duration, Waiting)> {
        let halves = self.in_line.load(Ordering::Acquire);
        let told = halves & 1 == 1;
        let waiting = if told { Waiting::Told { again: true } } else { Waiting::InLine };
        (halves > 0).then(|| (Duration::from_millis(halves / 2), waiting))
    }
}

impl Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("keys", &self.keys).finish_non_exhaustive()
    }
}
