//! The random value that proves a lease is ours.

use std::fmt;

/// 128 random bits, new for every acquisition: only who knows them renews or releases.
///
/// The first half is the same for all acquisitions of one manager: it names the
/// [`Inbox`](crate::store::Inbox) where news about the claim go.
///
/// `Debug` does not show them, so that no log line becomes a key to somebody's lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerToken(u128);

impl OwnerToken {
    /// A token that nobody else has, of a claim whose news go to `inbox`.
    pub(crate) fn random(inbox: u64) -> Self {
        Self((u128::from(inbox) << 64) | u128::from(rand::random::<u64>()))
    }

    /// Reads what `Display` wrote: a store's messages name claims by it.
    ///
    /// ```
    /// use lockattr::store::{Claim, LockKey, OwnerToken};
    ///
    /// let token = Claim::new(LockKey::new("lock:", "a")?, "").token();
    /// assert_eq!(OwnerToken::parse(&token.to_string()), Some(token));
    /// assert_eq!(OwnerToken::parse("42"), None);
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    pub fn parse(digits: &str) -> Option<Self> {
        u128::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 32).map(Self)
    }

    /// Where news about the claim go.
    pub fn inbox(self) -> u64 {
        // The upper half fits.
        (self.0 >> 64) as u64
    }
}

/// Thirty-two hexadecimal digits: what stands first in a lock's value.
impl fmt::Display for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In halves: formatting 128 bits at once takes twice as long.
        write!(f, "{:016x}{:016x}", self.inbox(), self.0 as u64)
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerToken(…)")
    }
}
