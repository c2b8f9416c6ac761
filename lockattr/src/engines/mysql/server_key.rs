//! The RSA key with which a user of `caching_sha2_password` sends the password where there is no TLS.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mysql_common::crypto::encrypt;

use crate::engines::der::{BIT_STRING, INTEGER, SEQUENCE, element};

/// A key as a server sends it (PEM), of a form and a size that the client's cryptography takes. It
/// panics on others, and works for minutes on large ones.
pub(super) struct ServerKey<'a> {
    pem: &'a str,
    /// How many bytes its modulus has.
    size: usize,
}

impl<'a> ServerKey<'a> {
    const BEGIN: &'static str = "-----BEGIN PUBLIC KEY-----";
    const END: &'static str = "-----END PUBLIC KEY-----";

    /// From 1024 to 8192 bits.
    const SIZES: std::ops::RangeInclusive<usize> = 128..=1024;

    /// Of four bytes at most: the usual one is 65537.
    const LONGEST_EXPONENT: usize = 4;

    /// What the padding adds (OAEP with SHA-1).
    const PADDING: usize = 42;

    /// Reads the payload of the packet with the key.
    pub(super) fn read(payload: &'a [u8]) -> Option<Self> {
        let [1, pem @ ..] = payload else { return None };
        let pem = std::str::from_utf8(pem).ok()?;
        let text = pem.trim().strip_prefix(Self::BEGIN)?.strip_suffix(Self::END)?;
        let text: String = text.split([' ', '\n', '\r', '\t']).collect();
        let der = STANDARD.decode(text).ok()?;
        let (outer, _) = element(SEQUENCE, &der)?;
        let (_algorithm, rest) = element(SEQUENCE, outer)?;
        let ([0, key @ ..], _) = element(BIT_STRING, rest)? else { return None };
        let (numbers, _) = element(SEQUENCE, key)?;
        let (modulus, rest) = element(INTEGER, numbers)?;
        let (exponent, _) = element(INTEGER, rest)?;
        let (modulus, exponent) = (unsigned(modulus)?, unsigned(exponent)?);
        let is_odd = |number: &[u8]| number.last().is_some_and(|last| last % 2 == 1);
        // The client counts the bytes of a modulus by its highest bit.
        let fits = Self::SIZES.contains(&modulus.len()) && modulus[0] >= 0x80;
        let is_key = fits && is_odd(modulus) && is_odd(exponent) && exponent != [1];
        let is_key = is_key && exponent.len() <= Self::LONGEST_EXPONENT;
        is_key.then_some(Self { pem, size: modulus.len() })
    }

    /// Encrypts a password, with the zero at its end, and the server's nonce. `None` if it is too long
    /// for the key.
    pub(super) fn encrypt(&self, password: &[u8], nonce: &[u8]) -> Option<Vec<u8>> {
        if password.len() + Self::PADDING > self.size {
            return None;
        }
        let masked: Vec<u8> =
            password.iter().zip(nonce.iter().cycle()).map(|(one, other)| one ^ other).collect();
        Some(encrypt(&masked, self.pem.as_bytes()))
    }
}

/// A positive number without the zero before it that makes it positive.
fn unsigned(number: &[u8]) -> Option<&[u8]> {
    match number {
        [0, rest @ ..] => Some(rest),
        [first, ..] if *first < 0x80 => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer(number: &[u8]) -> Vec<u8> {
        let length = u16::try_from(number.len()).unwrap().to_be_bytes();
        [&[INTEGER, 0x82], &length[..], number].concat()
    }

    fn long(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[tag, 0x82], &length[..], content].concat()
    }

    fn packet(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
        let numbers = long(SEQUENCE, &[integer(modulus), integer(exponent)].concat());
        let bits = long(BIT_STRING, &[&[0], &numbers[..]].concat());
        let text = STANDARD.encode(long(SEQUENCE, &[&[SEQUENCE, 0][..], &bits].concat()));
        format!("\u{1}{}\n{text}\n{}\n", ServerKey::BEGIN, ServerKey::END).into_bytes()
    }

    /// An odd number of so many bytes, whose highest bit is set.
    fn modulus(bytes: usize) -> Vec<u8> {
        [&[0, 0x80], &vec![7; bytes - 1][..]].concat()
    }

    #[test]
    fn a_usual_key_encrypts_to_its_own_length() {
        for size in [128, 256, 512, 1024] {
            let packet = packet(&modulus(size), &[1, 0, 1]);
            let key = ServerKey::read(&packet).unwrap();
            assert_eq!(key.encrypt(b"s3cret\0", &[7; 20]).unwrap().len(), size);
            let longest = vec![b'x'; size - 42];
            assert_eq!(key.encrypt(&longest, &[7; 20]).unwrap().len(), size);
            assert!(key.encrypt(&[&longest[..], &[0]].concat(), &[7; 20]).is_none());
        }
    }

    #[test]
    fn other_numbers_are_no_key() {
        let even = [&modulus(256)[..256], &[2]].concat();
        for (modulus, exponent) in [
            (vec![0], vec![3]),
            (vec![], vec![3]),
            (vec![0; 257], vec![3]),
            (modulus(127), vec![3]),
            (modulus(1025), vec![3]),
            (modulus(256)[1..].to_vec(), vec![3]),
            ([&[0, 7], &[7; 255][..]].concat(), vec![3]),
            (even, vec![3]),
            (modulus(256), vec![]),
            (modulus(256), vec![0]),
            (modulus(256), vec![1]),
            (modulus(256), vec![4]),
            (modulus(256), vec![1, 0, 0, 0, 1]),
        ] {
            assert!(ServerKey::read(&packet(&modulus, &exponent)).is_none(), "{modulus:?}");
        }
    }

    /// Neither this reader nor the client's own panics.
    #[test]
    fn a_damaged_key_is_none_or_still_encrypts() {
        let whole = packet(&modulus(128), &[1, 0, 1]);
        for at in 0..whole.len() {
            assert!(ServerKey::read(&whole[..at]).is_none() || at + 1 == whole.len());
            for byte in [0, b'A', b'/', b'=', b'-', b'\n', 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                if let Some(key) = ServerKey::read(&damaged) {
                    assert_eq!(key.encrypt(b"s3cret\0", &[7; 20]).unwrap().len(), 128);
                }
            }
        }
    }
}
