//! Replaces the servers' address in their replies, so that redirected clients connect over wires.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU16, Ordering};

/// The address that the harness' servers report for themselves.
const REAL: &[u8] = b"127.0.0.1";

/// The number of aliases, after which the first is reused.
const ALIASES: u16 = 9 * 10 * 9;

/// A loopback address of the same length as the real one, so that lengths in replies stay correct.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alias(Ipv4Addr);

impl Alias {
    /// Returns an alias that no other wires of this process have.
    pub(super) fn next() -> Self {
        static LAST: AtomicU16 = AtomicU16::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed) % ALIASES;
        let digit = |digit: u16| u8::try_from(digit).expect("a digit");
        Self(Ipv4Addr::new(
            127,
            digit(number / 90 + 1),
            digit(number / 9 % 10),
            digit(number % 9 + 1),
        ))
    }

    pub(super) fn at(self, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(self.0, port)
    }

    /// Replaces the real address with the alias. `kept` carries the end of one read over to the
    /// next if it may be the beginning of an address.
    pub(super) fn substitute(self, bytes: &[u8], kept: &mut Vec<u8>) -> Vec<u8> {
        let mut text = std::mem::take(kept);
        text.extend(bytes);
        let address = self.0.to_string();
        let mut from = 0;
        while let Some(offset) = text[from..].windows(REAL.len()).position(|part| part == REAL) {
            let (start, end) = (from + offset, from + offset + REAL.len());
            text[start..end].copy_from_slice(address.as_bytes());
            from = end;
        }
        let partial = (1..REAL.len()).rev().find(|&length| text[from..].ends_with(&REAL[..length]));
        *kept = text.split_off(text.len() - partial.unwrap_or(0));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: the bytes that `kept` carries over.
    #[test]
    fn an_address_is_replaced_wherever_the_reply_is_split() {
        let (alias, reply) =
            (Alias(Ipv4Addr::new(127, 1, 2, 3)), b"$9\r\n127.0.0.1\r\n+127.0.0.2\r\n");
        for cut in 0..=reply.len() {
            let mut kept = Vec::new();
            let mut output = alias.substitute(&reply[..cut], &mut kept);
            output.extend(alias.substitute(&reply[cut..], &mut kept));
            assert_eq!(output, b"$9\r\n127.1.2.3\r\n+127.0.0.2\r\n", "cut after {cut}");
            assert!(kept.is_empty(), "bytes are kept after the whole reply");
        }
    }
}
