//! What a server may send between its greeting and the end of the login. The client itself answers
//! much more, and panics on some of it.

use super::handshake::Packet;

/// More packets than any login has.
const MOST_PACKETS: u8 = 8;

/// What a password may be stretched by: 1024 doubled so many times. MariaDB doubles three times.
const MOST_ROUNDS: u8 = 7;

const CACHING_SHA2: &[u8] = b"caching_sha2_password";
const CLEAR: &[u8] = b"mysql_clear_password";

/// Which way a password may take that the server wants to see.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Passwords {
    /// Through TLS.
    #[cfg_attr(not(any(test, feature = "tls")), expect(dead_code, reason = "no TLS here"))]
    Encrypted,
    /// By the server's key, which anyone may have sent.
    ByKey,
    /// None.
    Never,
}

#[derive(Clone, Copy, PartialEq)]
enum Method {
    Native,
    CachingSha2,
    Clear,
    Ed25519,
    Parsec,
}

impl Method {
    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"mysql_native_password" => Some(Self::Native),
            CACHING_SHA2 => Some(Self::CachingSha2),
            CLEAR => Some(Self::Clear),
            b"client_ed25519" => Some(Self::Ed25519),
            b"parsec" => Some(Self::Parsec),
            _ => None,
        }
    }

    /// How many bytes its nonce has.
    fn nonce(self) -> Option<usize> {
        match self {
            Self::Native | Self::CachingSha2 => Some(20),
            Self::Ed25519 | Self::Parsec => Some(32),
            Self::Clear => None,
        }
    }
}

/// One login.
pub(super) struct LoginCheck {
    passwords: Passwords,
    /// Whether the program has enabled `mysql_clear_password`.
    clear: bool,
    method: Method,
    nonce: Vec<u8>,
    packets: u8,
    has_switched: bool,
}

/// What follows a packet that the client gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    /// More of the login.
    Login,
    /// The client answers with its password, which is sent by the server's key.
    Password,
    /// Nothing: the server refuses the user.
    Refused,
    /// The login has ended.
    End,
}

/// Why a packet reaches no client.
#[derive(Debug, PartialEq)]
pub(super) enum Refusal {
    Unexpected,
    /// The name of a method that is not supported, or that shows the password.
    Method(String),
    /// The server wants to see the password.
    Password,
}

impl LoginCheck {
    /// Begins with the server's greeting.
    pub(super) fn new(
        greeting: &Packet,
        passwords: Passwords,
        clear: bool,
    ) -> Result<Self, Refusal> {
        let (method, nonce) = greeting.method_and_nonce().ok_or(Refusal::Unexpected)?;
        // The client begins with one of these two.
        let is_sha2 = method.strip_suffix(&[0]).unwrap_or(method) == CACHING_SHA2;
        let method = if is_sha2 { Method::CachingSha2 } else { Method::Native };
        Ok(Self { passwords, clear, method, nonce, packets: 0, has_switched: false })
    }

    pub(super) fn nonce(&self) -> &[u8] {
        &self.nonce
    }

    /// Whether the client needs this check for a server that means well: a nonce of `ed25519` or
    /// `parsec` may end with a zero, which the client takes for no part of it.
    pub(super) fn is_needed(&self) -> bool {
        matches!(self.method, Method::Ed25519 | Method::Parsec)
    }

    /// Reads a packet of the server. Returns what the client gets.
    pub(super) fn read(&mut self, packet: Packet) -> Result<(Next, Packet), Refusal> {
        self.packets += 1;
        if self.packets > MOST_PACKETS {
            return Err(Refusal::Unexpected);
        }
        match (self.method, packet.payload()) {
            (_, [0x00, ..]) => Ok((Next::End, packet)),
            // A report of progress, after which the client reads on.
            (_, [0xff, 0xff, 0xff, ..]) => Err(Refusal::Unexpected),
            (_, [0xff, _, _, ..]) => Ok((Next::Refused, packet)),
            (_, [0xfe, request @ ..]) if !self.has_switched => {
                self.has_switched = true;
                let switch = self.switch(request)?;
                Ok((Next::Login, packet.with_payload(&switch)))
            }
            // The server knows the user from before.
            (Method::CachingSha2, [1, 3]) => Ok((Next::Login, packet)),
            (Method::CachingSha2, [1, 4]) => match self.passwords {
                Passwords::Encrypted => Ok((Next::Login, packet)),
                Passwords::ByKey => Ok((Next::Password, packet)),
                Passwords::Never => Err(Refusal::Password),
            },
            // With a byte of its own before it, or without.
            (Method::Parsec, [1, salt @ ..] | salt) if is_salt(salt) => Ok((Next::Login, packet)),
            _ => Err(Refusal::Unexpected),
        }
    }

    /// Checks a request for another method, and returns it as the client reads it best.
    fn switch(&mut self, request: &[u8]) -> Result<Vec<u8>, Refusal> {
        let end = request.iter().position(|byte| *byte == 0).unwrap_or(request.len());
        let (name, nonce) = request.split_at(end);
        let refused = || Refusal::Method(String::from_utf8_lossy(name).into_owned());
        self.method = Method::named(name).ok_or_else(refused)?;
        if self.method == Method::Clear && !(self.clear && self.passwords != Passwords::Never) {
            return Err(refused());
        }
        let nonce = nonce.get(1..).ok_or(Refusal::Unexpected)?;
        if let Some(length) = self.method.nonce() {
            self.nonce = match nonce.split_at_checked(length) {
                Some((nonce, [] | [0])) => nonce.to_vec(),
                _ => return Err(Refusal::Unexpected),
            };
        }
        // The client takes a zero at the end for no part of the nonce, also if the server adds none.
        Ok([&[0xfe], name, &[0], &self.nonce, &[0]].concat())
    }
}

/// A salt of `parsec`, and how often to apply it.
fn is_salt(salt: &[u8]) -> bool {
    matches!(salt, [b'P', rounds, ..] if *rounds <= MOST_ROUNDS) && salt.len() == 20
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: [u8; 20] = [7; 20];

    fn packet(payload: &[u8]) -> Packet {
        Packet::new(2, payload)
    }

    fn greeting(method: &[u8]) -> Packet {
        let capabilities = [0xff, 0xf7, 45, 2, 0, 0xff, 0xdf, 21];
        let payload = [
            &b"\x0a9.7.0\0"[..],
            &[7, 0, 0, 0],
            &NONCE[..8],
            &[0],
            &capabilities,
            &[0; 10],
            &NONCE[8..],
            &[0],
            method,
        ];
        packet(&payload.concat())
    }

    fn check(passwords: Passwords) -> LoginCheck {
        LoginCheck::new(&greeting(b"caching_sha2_password\0"), passwords, false).unwrap()
    }

    fn next(passwords: Passwords, payload: &[u8]) -> Option<Next> {
        check(passwords).read(packet(payload)).ok().map(|(next, _)| next)
    }

    fn refusal(check: &mut LoginCheck, payload: &[u8]) -> Option<Refusal> {
        check.read(packet(payload)).err()
    }

    #[test]
    fn a_password_takes_the_way_that_it_may() {
        assert_eq!(refusal(&mut check(Passwords::Never), &[1, 4]), Some(Refusal::Password));
        assert_eq!(next(Passwords::ByKey, &[1, 4]), Some(Next::Password));
        assert_eq!(next(Passwords::Encrypted, &[1, 4]), Some(Next::Login));
        // Whom the server knows, it does not ask.
        assert_eq!(next(Passwords::Never, &[1, 3]), Some(Next::Login));
        let mut native =
            LoginCheck::new(&greeting(b"mysql_native_password\0"), Passwords::ByKey, false)
                .unwrap();
        assert_eq!(refusal(&mut native, &[1, 4]), Some(Refusal::Unexpected));
    }

    #[test]
    fn only_an_error_of_the_server_and_an_ok_end_a_login() {
        assert_eq!(next(Passwords::Never, &[0, 0]), Some(Next::End));
        assert_eq!(next(Passwords::Never, &[0xff, 0x15, 4, b'x']), Some(Next::Refused));
        for payload in
            [&[][..], &[0xff], &[0xff, 0xff, 0xff, 1], &[2], &[1], &[1, 5], &[1, 4, 0], b"P"]
        {
            let refusal = refusal(&mut check(Passwords::Encrypted), payload);
            assert_eq!(refusal, Some(Refusal::Unexpected), "{payload:?}");
        }
        let mut long = check(Passwords::Encrypted);
        assert!((0..20).any(|_| long.read(packet(&[1, 3])).is_err()));
    }

    #[test]
    fn a_method_has_its_whole_nonce_and_is_chosen_once() {
        for (method, length) in [
            ("mysql_native_password", 20),
            ("caching_sha2_password", 20),
            ("client_ed25519", 32),
            ("parsec", 32),
        ] {
            let request = |nonce: &[u8]| [&[0xfe], method.as_bytes(), &[0], nonce].concat();
            for nonce in [vec![9; length], [vec![9; length], vec![0]].concat(), vec![0; length]] {
                let mut login = check(Passwords::Never);
                let Ok((Next::Login, forwarded)) = login.read(packet(&request(&nonce))) else {
                    panic!("{method}: {nonce:?}")
                };
                let whole = [&nonce[..length], &[0]].concat();
                assert_eq!(forwarded.payload(), request(&whole));
                assert_eq!(login.nonce(), &nonce[..length]);
                assert_eq!(login.is_needed(), length == 32, "{method}");
                let again = refusal(&mut login, &request(&nonce));
                assert_eq!(again, Some(Refusal::Unexpected), "{method}");
            }
            for nonce in [vec![], vec![9; length - 1], vec![9; length + 1], vec![9; length + 2]] {
                let refusal = refusal(&mut check(Passwords::ByKey), &request(&nonce));
                assert_eq!(refusal, Some(Refusal::Unexpected), "{method}: {nonce:?}");
            }
        }
        let cut = refusal(&mut check(Passwords::ByKey), b"\xfeparsec");
        assert_eq!(cut, Some(Refusal::Unexpected));
    }

    #[test]
    fn methods_that_show_the_password_are_refused() {
        for name in ["mysql_clear_password", "dialog", "sha256_password", "mysql_old_password", ""]
        {
            let request = [&[0xfe], name.as_bytes(), &[0], &NONCE, &[0]].concat();
            let refusal = refusal(&mut check(Passwords::Encrypted), &request);
            assert_eq!(refusal, Some(Refusal::Method(name.into())));
        }
        let request = b"\xfemysql_clear_password\0";
        for passwords in [Passwords::Encrypted, Passwords::ByKey, Passwords::Never] {
            let greeting = greeting(b"caching_sha2_password\0");
            let mut enabled = LoginCheck::new(&greeting, passwords, true).unwrap();
            let is_refused = enabled.read(packet(request)).is_err();
            assert_eq!(is_refused, passwords == Passwords::Never);
        }
    }

    #[test]
    fn a_salt_does_not_choose_how_long_a_login_takes() {
        for (rounds, is_refused) in [(0, false), (3, false), (7, false), (8, true), (20, true)] {
            for prefix in [&[][..], &[1]] {
                let mut login = check(Passwords::Never);
                login.read(packet(&[&b"\xfeparsec\0"[..], &[9; 32]].concat())).ok().unwrap();
                let salt = [prefix, &[b'P', rounds], &[9; 18]].concat();
                assert_eq!(login.read(packet(&salt)).is_err(), is_refused, "{rounds}");
            }
        }
    }

    #[test]
    fn a_greeting_without_its_nonce_is_none() {
        let whole = greeting(b"caching_sha2_password\0");
        let fixed = 1 + 6 + 31 + 13;
        for length in 0..fixed {
            let cut = packet(&whole.payload()[..length]);
            assert!(LoginCheck::new(&cut, Passwords::ByKey, false).is_err(), "{length}");
        }
        // The version, the two capabilities, the length of the nonce.
        for (at, byte) in [(0, 9), (21, 0x77), (21, 0xf5), (27, 0x80)] {
            let mut other = whole.payload().to_vec();
            other[at] = byte;
            let refused = LoginCheck::new(&packet(&other), Passwords::ByKey, false).is_err();
            assert!(refused, "{at}");
        }
    }
}
