//! The random value that proves a lease is ours.

use std::fmt;

/// 128 random bits, new for every acquisition: only who knows them renews or releases.
///
/// `Debug` does not show them, so that no log line becomes a key to somebody's lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerToken(u128);

impl OwnerToken {
    /// A token that nobody else has.
    pub(crate) fn random() -> Self {
        Self(rand::random())
    }
}

/// Thirty-two hexadecimal digits: what stands first in a lock's value.
impl fmt::Display for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerToken(…)")
    }
}
