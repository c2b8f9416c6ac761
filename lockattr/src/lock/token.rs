//! The owner token: the random value that proves ownership of a lease.

use std::fmt;

use crate::lock::digits::{Digits, hex};
use crate::platform::entropy::random_bits;

/// 128 random bits, new for every acquisition. A renewal or a release must present them.
///
/// The first half is the same for all acquisitions of one manager. It names the
/// [`Subscriber`](crate::store::Subscriber) that receives the notifications for the claim.
///
/// `Debug` does not show the bits, so that no log line allows a reader to release a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerToken(u128);

impl OwnerToken {
    /// A unique token, for a claim whose notifications go to `subscriber`.
    pub(crate) fn random(subscriber: u64) -> Self {
        Self((u128::from(subscriber) << 64) | u128::from(random_bits()))
    }

    /// Parses what `Display` wrote: a store's messages name claims by it.
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
        // `from_str_radix` also accepts a sign and capitals, so that one token would have several
        // texts.
        let ours = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let digits = Some(digits).filter(|text| text.len() == 32 && text.bytes().all(ours))?;
        u128::from_str_radix(digits, 16).ok().map(Self)
    }

    pub(crate) fn digits(self) -> Digits<32> {
        hex(self.0)
    }

    /// The subscriber that receives the notifications for the claim.
    pub fn subscriber(self) -> u64 {
        // The upper half fits.
        (self.0 >> 64) as u64
    }

    /// The bytes that its digits name.
    #[cfg(feature = "postgres")]
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// A total order on claims, where any order will do.
    pub(crate) fn order(self) -> u128 {
        self.0
    }
}

/// 32 hexadecimal digits, with which a lock's value begins.
impl fmt::Display for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.digits().as_str())
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::OwnerToken;

    /// Red without: the check of each digit in `parse`.
    #[test]
    fn a_token_has_one_name_only() {
        let token = OwnerToken::random(0xabcd);
        let name = token.to_string();
        assert_eq!(OwnerToken::parse(&name), Some(token));
        let signed = format!("+{}", &name[1..]);
        for other in [name.to_uppercase(), signed, format!("{name}0"), name[1..].to_owned()] {
            assert_eq!(OwnerToken::parse(&other), None, "{other}");
        }
    }
    /// Red without: the shift in `random`, or `Debug` without the digits.
    #[test]
    fn a_token_names_its_subscriber_and_is_in_no_log() {
        let token = OwnerToken::random(0xabcd);
        assert_eq!(token.subscriber(), 0xabcd);
        assert!(token.to_string().starts_with("000000000000abcd"));
        assert_ne!(token, OwnerToken::random(0xabcd));
        assert_eq!(format!("{token:?}"), "OwnerToken(…)");
    }
}
