//! The elements of DER: a tag, a length and a content, in certificates and keys.

pub(super) const SEQUENCE: u8 = 0x30;
#[cfg(all(feature = "postgres", feature = "tls"))]
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
#[cfg(all(feature = "mysql", unix))]
pub(super) const INTEGER: u8 = 0x02;
#[cfg(all(feature = "mysql", unix))]
pub(super) const BIT_STRING: u8 = 0x03;

/// Splits an element with this tag into what it contains and what follows it.
pub(super) fn element(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let (&length, rest) = rest.split_first().filter(|_| first == tag)?;
    // Up to 127, the length itself; otherwise how many bytes it has.
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (digits.iter().fold(0, |sum, &digit| sum << 8 | usize::from(digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}
