//! Who asks for what.

use std::fmt::{self, Debug, Write};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::LockKey;
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
    /// How it stands in the store's line, beside its value: to take it out of there if it leaves.
    entry: OnceLock<String>,
    in_line: AtomicBool,
}

impl Claim {
    /// A claim with an owner token of its own, and a label that says who asks. It stands alone: no
    /// inbox hears of it.
    pub fn new(key: LockKey, label: &str) -> Self {
        Self::with(rand::random(), Box::new([key]), Sharing::Exclusive, label)
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
        Self {
            keys,
            token,
            sharing,
            value,
            entry: OnceLock::new(),
            in_line: AtomicBool::new(false),
        }
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
    /// [`Holder::from_value`](crate::Holder::from_value) reads. The same for the whole life of the claim, so a store may
    /// compare it as a whole.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The keys as an error names them.
    pub(crate) fn named(&self) -> String {
        self.keys.iter().map(LockKey::as_str).collect::<Vec<_>>().join(", ")
    }

    /// Gets in line, under the entry that `describe` makes when it is first needed.
    #[cfg(feature = "redis")]
    pub(crate) fn enter_line(&self, describe: impl FnOnce() -> String) -> &str {
        self.in_line.store(true, Ordering::Release);
        self.entry.get_or_init(describe)
    }

    /// Its turn has come: it does not stand in line any more.
    #[cfg(feature = "redis")]
    pub(crate) fn left_line(&self) {
        self.in_line.store(false, Ordering::Release);
    }

    /// What of it may still stand in line; empty if nothing does.
    #[cfg(feature = "redis")]
    pub(crate) fn entry(&self) -> &str {
        if !self.in_line.load(Ordering::Acquire) {
            return "";
        }
        self.entry.get().map_or("", String::as_str)
    }
}

impl Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("keys", &self.keys).finish_non_exhaustive()
    }
}

/// One lease to renew.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Renewal {
    /// Whose it is.
    pub claim: Arc<Claim>,
    /// How long it shall run from now.
    pub ttl: Duration,
}

impl Renewal {
    /// The lease of `claim`, for `ttl`.
    pub fn new(claim: Arc<Claim>, ttl: Duration) -> Self {
        Self { claim, ttl }
    }
}

/// One lock to give back.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Releasing {
    /// Whose it is.
    pub claim: Arc<Claim>,
    /// How long it stays taken still: `hold_at_least` is not over. Zero to free it now.
    pub after: Duration,
}

impl Releasing {
    /// The lock of `claim`, now.
    pub fn new(claim: Arc<Claim>) -> Self {
        Self { claim, after: Duration::ZERO }
    }

    /// The same, but it stays taken for so long still, and then ends by itself.
    #[must_use]
    pub fn after(mut self, after: Duration) -> Self {
        self.after = after;
        self
    }
}
