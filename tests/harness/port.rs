//! Loopback ports that stay ours for as long as they are wanted, whether or not somebody listens.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// Below the range that systems hand out to outgoing connections (from 32768 on Linux), where a
/// client that reconnects to a server that is down could reach itself.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// A port that no other process gets while this lives: a server of ours may go down on it and come back.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    /// Bound, and never listening: the system refuses connections while no server listens beside it.
    _kept: TcpSocket,
}

impl Port {
    /// One that no process has.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub(crate) fn free() -> Self {
        for attempt in 0..1_000_u32 {
            // `RandomState` is seeded by the system: parallel test processes do not walk over the
            // same ports.
            let random = RandomState::new().hash_one(attempt);
            let number = FIRST + (random % u64::from(COUNT)) as u16;
            let kept = TcpSocket::new_v4().expect("a socket");
            // A process that has the port, listening or only keeping it, keeps out a socket that does not
            // offer to share it. From then on ours does, and servers all ask for that.
            if kept.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, number))).is_ok() {
                kept.set_reuseaddr(true).expect("an option of every socket");
                return Self { number, _kept: kept };
            }
        }
        panic!("no free port between {FIRST} and {}", FIRST + COUNT);
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}
