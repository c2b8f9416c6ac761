//! The id of a holder: what names it, and proves nothing.

use std::fmt;
use std::str::FromStr;

use sha1_smol::Sha1;

use crate::Error;

/// How many digits the digest has.
const DIGITS: usize = 16;

/// How a value ends whose key is done, and how the id of its holder does.
const DONE_VALUE: &[u8] = b" done=1";
const DONE_ID: &str = "-done";

/// The most of another program's value that counts. Stores show no more of it.
const SHOWN: usize = 4096;

/// Names one holder of a lock, for [`force_release`](crate::LockManager::force_release): 16 hexadecimal digits, then
/// `-done` if the key is [done](field@crate::Holder::done).
///
/// It is a digest of the owner token, or of what another program wrote under the key. The token does not follow from
/// it, so it may be printed and logged. Each acquisition has another one, and so has the mark of a key that is done.
/// Callers of one process that hand a lock off without the store hold it by one claim, and have one id; and so have
/// all holders of a program that writes the same value each time. `HolderId::default()` names none.
///
/// ```
/// use lockattr::HolderId;
///
/// let id: HolderId = "5baa61e4c9b93f3f-done".parse()?;
/// assert_eq!(id.to_string(), "5baa61e4c9b93f3f-done");
/// assert!("nightly".parse::<HolderId>().is_err());
/// # Ok::<(), lockattr::Error>(())
/// ```
///
/// With the feature `serde` it is this text.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "String", try_from = "String"))]
pub struct HolderId {
    digest: u64,
    done: bool,
}

impl HolderId {
    /// The id of the holder that has written this value under the key. For a [`Store`](crate::store::Store), which
    /// compares it with the id that an operator passes; [`Holder::from_value`](crate::Holder::from_value) contains it.
    ///
    /// ```
    /// use lockattr::HolderId;
    /// use lockattr::store::{Claim, LockKey};
    ///
    /// let claim = Claim::new(LockKey::new("lock:", "product:42")?, "service=orders");
    /// let done = format!("{} done=1", claim.value());
    /// assert_ne!(HolderId::of(claim.value()), HolderId::of(done));
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    pub fn of(value: impl AsRef<[u8]>) -> Self {
        // `redis/force_release.lua` does the same.
        let value = value.as_ref();
        let done = value.ends_with(DONE_VALUE);
        let named = match value.split_at_checked(32) {
            // The rest is a label, which may change when a claim begins to share its lock.
            Some((token, [b' ', ..])) if token.iter().all(u8::is_ascii_hexdigit) => token,
            _ => &value[..value.len().min(SHOWN)],
        };
        let bytes = Sha1::from(named).digest().bytes().into_iter().take(DIGITS / 2);
        Self { digest: bytes.fold(0, |digest, byte| digest << 8 | u64::from(byte)), done }
    }

    /// The mark of the same claim, once its key is done.
    pub(crate) fn mark(self) -> Self {
        Self { done: true, ..self }
    }

    /// The same holder as if its key were not done.
    pub(crate) fn not_done(self) -> Self {
        Self { done: false, ..self }
    }
}

impl fmt::Display for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0DIGITS$x}{}", self.digest, if self.done { DONE_ID } else { "" })
    }
}

impl fmt::Debug for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HolderId({self})")
    }
}

/// Reads what `Display` wrote.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if it is another text.
impl FromStr for HolderId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (digits, done) = match text.strip_suffix(DONE_ID) {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        // `from_str_radix` also accepts a sign.
        let is_digest = digits.len() == DIGITS && digits.bytes().all(|it| it.is_ascii_hexdigit());
        let digest = u64::from_str_radix(digits, 16).ok().filter(|_| is_digest);
        digest.map(|digest| Self { digest, done }).ok_or_else(|| {
            Error::InvalidOptions(format!(
                "`{text}` is not the id of a holder: an id has {DIGITS} hexadecimal digits, then `{DONE_ID}` if the key is \
                 done; `lockattr release KEY` prints it"
            ))
        })
    }
}

impl AsRef<Self> for HolderId {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl From<HolderId> for String {
    fn from(id: HolderId) -> Self {
        id.to_string()
    }
}

/// As `FromStr`.
impl TryFrom<String> for HolderId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::token::OwnerToken;

    /// Red without: the token alone in `of`, or `done`.
    #[test]
    fn an_id_is_that_of_the_claim_and_another_one_once_its_key_is_done() {
        let token = OwnerToken::random(7).to_string();
        let of = |token: &str, label: &str| HolderId::of([token, label].concat());
        let id = of(&token, " service=x");
        assert_ne!(id, of(&OwnerToken::random(7).to_string(), " service=x"));
        assert_eq!(id, of(&token, " mode=shared service=x"), "it is the same claim");
        let done = of(&token, " service=x done=1");
        assert_ne!(id, done);
        assert_eq!(id, done.not_done());
        assert!(!token.contains(&id.to_string()), "no part of the secret");
    }

    /// Red without: `SHOWN`, or the check of the digits of a token.
    #[test]
    fn what_another_program_wrote_counts_as_far_as_a_store_shows_it() {
        let long = "x".repeat(SHOWN + 1);
        assert_eq!(HolderId::of(&long), HolderId::of(&long[1..]));
        assert_ne!(HolderId::of([0xff; 20]), HolderId::of([0xfe; 20]));
        let words = |word| format!("{} {word}", "g".repeat(32));
        assert_ne!(HolderId::of(words("a")), HolderId::of(words("b")));
    }

    /// Red without: any of the checks in `from_str`.
    #[test]
    fn an_id_is_read_as_it_is_written_and_no_other_text_is() {
        for value in ["", "0 service=x", "0 service=x done=1"] {
            let id = HolderId::of(value);
            assert_eq!(id.to_string().parse::<HolderId>().unwrap(), id);
        }
        for other in ["", "-done", "+123456789abcdef", "123456789abcdef", "123456789abcdefg"] {
            let refused = other.parse::<HolderId>().unwrap_err().to_string();
            assert!(refused.contains("`lockattr release KEY` prints it"), "{refused}");
        }
    }
}
