//! What a server may send before it has proved itself: each message of a login is bounded, and a request
//! for the password is checked before the client can answer it.

use tokio_postgres::tls::{ChannelBinding, TlsStream};

use crate::engines::unproven::{CheckLogin, LONGEST_LOGIN, Unproven};

/// The longest message of a login, as in libpq.
const LONGEST_MESSAGE: u32 = 30_000;

impl<S: TlsStream + Unpin> TlsStream for Unproven<S, LoginCheck> {
    fn channel_binding(&self) -> ChannelBinding {
        self.stream.channel_binding()
    }
}

/// Reads the messages of the server beside the client: a type, a length that includes itself, and in a
/// request for authentication its kind.
#[derive(Default)]
pub(super) struct LoginCheck {
    no_passwords: bool,
    header: Vec<u8>,
    /// How many bytes of the message are left after its header.
    left: usize,
    read: usize,
}

impl LoginCheck {
    const AUTHENTICATION: u8 = b'R';
    const READY_FOR_QUERY: u8 = b'Z';
    const CLEARTEXT: [u8; 4] = [0, 0, 0, 3];
    const MD5: [u8; 4] = [0, 0, 0, 5];

    /// With `no_passwords`, the server may not ask for the password itself, nor for its MD5.
    pub(super) fn new(no_passwords: bool) -> Self {
        Self { no_passwords, ..Self::default() }
    }

    /// Whether the header is whole, and the message may be read.
    fn ends_header(&mut self) -> Result<bool, &'static str> {
        let Some((&[kind, a, b, c, d], code)) = self.header.split_first_chunk() else {
            return Ok(false);
        };
        let length = u32::from_be_bytes([a, b, c, d]);
        if length > LONGEST_MESSAGE {
            return Err("the server sends a longer message in its login than PostgreSQL does");
        }
        if kind != Self::AUTHENTICATION || length < 8 {
            self.left = (length as usize).saturating_sub(4);
            return Ok(true);
        }
        let Ok(code) = <[u8; 4]>::try_from(code) else { return Ok(false) };
        if self.no_passwords && (code == Self::CLEARTEXT || code == Self::MD5) {
            return Err(
                "the server has no TLS and asks for a password that others on the network could \
                 read (method `password` or `md5`): set `ssl = on` there and write \
                 `sslmode=verify-full` (with the feature `tls`), use `scram-sha-256`, or write \
                 `sslmode=disable` if the network is your own",
            );
        }
        self.left = length as usize - 8;
        Ok(true)
    }
}

impl CheckLogin for LoginCheck {
    fn read(&mut self, mut bytes: &[u8]) -> Result<bool, &'static str> {
        self.read += bytes.len();
        if self.read > LONGEST_LOGIN {
            return Err("the server sends more in its login than PostgreSQL does");
        }
        loop {
            let of_message = bytes.len().min(self.left);
            bytes = &bytes[of_message..];
            self.left -= of_message;
            let Some((&first, after)) = bytes.split_first() else { return Ok(false) };
            bytes = after;
            self.header.push(first);
            if self.ends_header()? {
                if self.header[0] == Self::READY_FOR_QUERY {
                    return Ok(true);
                }
                self.header.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len() + 4).unwrap().to_be_bytes();
        [&[kind], &length[..], content].concat()
    }

    #[test]
    fn a_login_is_checked_however_it_is_cut() {
        let bytes = [
            message(b'N', &[7; 300]),
            message(b'R', &[0, 0, 0, 10, b'S', 0, 0]),
            message(b'R', &[0; 4]),
            message(b'S', b"a\0b\0"),
            message(b'Z', b"I"),
        ]
        .concat();
        for length in 1..bytes.len() {
            let mut login = LoginCheck::new(true);
            let ends = bytes.chunks(length).any(|chunk| login.read(chunk).unwrap());
            assert!(ends, "{length}");
            let cut = &bytes[..bytes.len() - 6];
            assert!(!LoginCheck::new(true).read(cut).unwrap());
        }
    }

    #[test]
    fn a_request_for_the_password_is_found_however_it_is_cut() {
        for code in [3, 5] {
            let request = message(b'R', &[0, 0, 0, code, 1, 2, 3, 4]);
            let bytes = [message(b'N', &[b'R'; 20]), request].concat();
            for length in 1..=bytes.len() {
                let refused = |mut login: LoginCheck| {
                    bytes.chunks(length).any(|chunk| login.read(chunk).is_err())
                };
                assert!(
                    refused(LoginCheck::new(true)) && !refused(LoginCheck::new(false)),
                    "{code} by {length}"
                );
            }
        }
    }

    #[test]
    fn lengths_are_bounded() {
        for length in [u32::MAX, 30_001] {
            let bytes = [b"S", &length.to_be_bytes()[..]].concat();
            assert!(LoginCheck::new(false).read(&bytes).is_err());
        }
        assert!(!LoginCheck::new(false).read(&[b'R', 0, 0, 0, 0]).unwrap());
        let (mut login, notice) = (LoginCheck::new(false), message(b'N', &[0; 29_000]));
        assert!((0..40).any(|_| login.read(&notice).is_err()));
    }
}
