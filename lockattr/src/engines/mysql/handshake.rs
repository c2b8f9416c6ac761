//! The packets before the end of a login: how a stream is cut into them, and what TLS changes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The capability to switch to TLS, which the server offers and the client answers.
const SSL: u8 = 0x08;

/// The first 32 bytes of the client's answer say what the whole answer would say without a login.
#[cfg(feature = "tls")]
const SSL_REQUEST: usize = 32;

/// What the client and the server need to have in common: the protocol of version 4.1, and the nonces
/// of its logins.
const NEEDED: u16 = 0x8200;

/// The capability to name the method of the login, in the upper half.
const NAMES_METHOD: u8 = 0x08;

/// The longest nonce of a greeting. The client fails on some lengths from 128.
const LONGEST_NONCE: u8 = 64;

/// More than a packet of the handshake ever has.
const LONGEST: usize = 1 << 16;

/// One packet: a length of three bytes, a sequence number, and the payload.
pub(super) struct Packet(Vec<u8>);

/// Reads packets. It may be dropped at any time, and loses nothing.
#[derive(Default)]
pub(super) struct Packets(Vec<u8>);

impl Packets {
    /// The next packet; `None` at the end of the stream.
    pub(super) async fn next(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<Option<Packet>> {
        loop {
            if let Some(header) = self.0.first_chunk::<4>() {
                let [a, b, c, _] = *header;
                let end = 4 + usize::from(a) + (usize::from(b) << 8) + (usize::from(c) << 16);
                if end > LONGEST {
                    return Err(unexpected());
                }
                if self.0.len() >= end {
                    let rest = self.0.split_off(end);
                    return Ok(Some(Packet(std::mem::replace(&mut self.0, rest))));
                }
            }
            if stream.read_buf(&mut self.0).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// What was read beyond the last packet.
    pub(super) fn rest(self) -> Vec<u8> {
        self.0
    }
}

impl Packet {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn new(number: u8, payload: &[u8]) -> Self {
        let [a, b, c, ..] = payload.len().to_le_bytes();
        Self([&[a, b, c, number], payload].concat())
    }

    pub(super) fn number(&self) -> u8 {
        self.0.get(3).copied().unwrap_or_default()
    }

    pub(super) fn payload(&self) -> &[u8] {
        self.0.get(4..).unwrap_or_default()
    }

    /// Another payload in the same place of the sequence.
    pub(super) fn with_payload(&self, payload: &[u8]) -> Self {
        Self::new(self.number(), payload)
    }

    /// The same packet, so many places later in the sequence.
    pub(super) fn moved(mut self, by: i8) -> Self {
        if let Some(number) = self.0.get_mut(3) {
            *number = number.wrapping_add_signed(by);
        }
        self
    }

    /// Why the server refuses the connection in place of a greeting, such as too many connections.
    pub(super) fn refusal(&self) -> Option<String> {
        let [0xff, _, _, message @ ..] = self.payload() else { return None };
        Some(String::from_utf8_lossy(message).into_owned())
    }

    /// Whether the server's greeting offers TLS.
    #[cfg(feature = "tls")]
    pub(super) fn offers_tls(&self) -> bool {
        self.capabilities().and_then(|at| self.0.get(at + 1)).is_some_and(|high| high & SSL != 0)
    }

    /// The server's greeting, without the offer.
    pub(super) fn without_tls(mut self) -> Self {
        let high = self.capabilities().map(|at| at + 1);
        if let Some(high) = high.and_then(|at| self.0.get_mut(at)) {
            *high &= !SSL;
        }
        self
    }

    /// The client's answer to the greeting, and the request for TLS before it.
    #[cfg(feature = "tls")]
    pub(super) fn with_tls(mut self) -> io::Result<(Self, Self)> {
        *self.0.get_mut(5).ok_or_else(unexpected)? |= SSL;
        let start = self.0.get(4..4 + SSL_REQUEST).ok_or_else(unexpected)?;
        let number = self.0[3];
        let request = [&[SSL_REQUEST as u8, 0, 0, number], start].concat();
        Ok((Self(request), self.moved(1)))
    }

    /// The method of the login that a greeting names, and the nonce. `None` if it is no greeting that the
    /// client reads.
    pub(super) fn method_and_nonce(&self) -> Option<(&[u8], Vec<u8>)> {
        let (before, fixed) = self.0.split_at_checked(self.capabilities()?)?;
        let first = before.get(before.len() - 9..before.len() - 1)?;
        let (fixed, rest) = fixed.split_at_checked(18)?;
        let [low, high, _, _, _, upper, _, length, ..] = *fixed else { return None };
        let is_needed = u16::from_le_bytes([low, high]) & NEEDED == NEEDED;
        if !is_needed || length > LONGEST_NONCE {
            return None;
        }
        let (second, method) = rest.split_at_checked(usize::from(length.max(21) - 8))?;
        let names_method = upper & NAMES_METHOD != 0;
        let nonce = [first, second.get(..12)?].concat();
        Some((if names_method { method } else { &[] }, nonce))
    }

    /// Where a greeting (version 10) has its capabilities: after the server's version, the number of
    /// the connection, eight bytes of a nonce and a zero.
    fn capabilities(&self) -> Option<usize> {
        let payload = self.payload();
        let end = payload.iter().position(|byte| *byte == 0)?;
        (payload[0] == 10).then_some(4 + end + 1 + 4 + 8 + 1)
    }
}

fn unexpected() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an unexpected packet in the handshake")
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use super::*;

    /// A greeting as MariaDB 10.11 begins it.
    fn greeting(capabilities: [u8; 2]) -> Packet {
        let payload =
            [&b"\x0a10.11\0"[..], &[7, 0, 0, 0], b"nonce123", &[0], &capabilities, &[45]].concat();
        let length = u8::try_from(payload.len()).unwrap();
        Packet([&[length, 0, 0, 0], &payload[..]].concat())
    }

    #[test]
    fn the_offer_of_tls_is_read_and_removed() {
        assert!(!greeting([0xff, 0xf7]).offers_tls());
        let offer = greeting([0xff, 0xff]);
        assert!(offer.offers_tls());
        assert_eq!(offer.without_tls().0, greeting([0xff, 0xf7]).0);
    }

    /// As MariaDB sends it to one client too many: a code and a sentence.
    #[test]
    fn a_refusal_is_no_greeting_without_tls() {
        let refusal =
            Packet([&[23, 0, 0, 0, 0xff, 0x10, 0x04][..], b"Too many connections"].concat());
        assert_eq!(refusal.refusal().as_deref(), Some("Too many connections"));
        assert!(!refusal.offers_tls());
        assert_eq!(greeting([0xff, 0xff]).refusal(), None);
    }

    #[test]
    fn a_request_for_tls_repeats_the_start_of_the_answer() {
        let answer = [&[40, 0, 0, 1, 0x85, 0xa2][..], &[9; 38]].concat();
        let (request, answer) = Packet(answer).with_tls().unwrap();
        assert_eq!(request.0[..6], [32, 0, 0, 1, 0x85, 0xaa]);
        assert_eq!((request.0.len(), &answer.0[..6]), (36, &[40, 0, 0, 2, 0x85, 0xaa][..]));
        assert!(Packet(vec![1, 0, 0, 1, 0]).with_tls().is_err());
    }

    #[tokio::test]
    async fn packets_are_cut_out_of_the_stream() {
        let mut stream: &[u8] = &[1, 0, 0, 0, 7, 2, 0, 0, 1, 8, 9, 1];
        let mut packets = Packets::default();
        assert_eq!(packets.next(&mut stream).await.unwrap().unwrap().bytes(), [1, 0, 0, 0, 7]);
        assert_eq!(packets.next(&mut stream).await.unwrap().unwrap().bytes(), [2, 0, 0, 1, 8, 9]);
        assert!(packets.next(&mut stream).await.unwrap().is_none());
        assert_eq!(packets.rest(), [1]);
        let mut long: &[u8] = &[0, 0, 9, 0];
        assert!(Packets::default().next(&mut long).await.is_err());
    }
}
