//! Reserves loopback ports, whether or not a server listens on them.

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use tokio::net::TcpSocket;

/// The first port. The range is below that of outgoing connections (from 32768 on Linux), where a
/// client that reconnects to a server that is down could connect to itself.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// The ports that this process has had. It gets none again, because a client of an earlier test may
/// still try to reach its server.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A port that no other process gets while this value lives. A server of the harness may stop and
/// start on it.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    /// Bound, but never listening: without a server on the port, the system refuses connections.
    _socket: TcpSocket,
}

impl Port {
    /// Reserves a free port.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub(crate) fn free() -> Self {
        let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        for attempt in 0..1_000_u32 {
            // The system seeds `RandomState`, so parallel test processes do not try the same ports.
            let random = RandomState::new().hash_one(attempt);
            let number = FIRST + (random % u64::from(COUNT)) as u16;
            if given.contains(&number) {
                continue;
            }
            let socket = TcpSocket::new_v4().expect("a socket");
            // Without `SO_REUSEADDR`, the bind fails if another process listens on the port or
            // reserves it. Set afterwards, it lets a server share the port: all servers set it too.
            if socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, number))).is_ok() {
                socket.set_reuseaddr(true).expect("an option of every socket");
                given.insert(number);
                return Self { number, _socket: socket };
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
