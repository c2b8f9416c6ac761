//! Free loopback ports that stay ours for as long as a server is down between two lives.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{Ipv4Addr, TcpListener};

/// Below the range that systems hand out to outgoing connections (from 32768 on Linux). A port from
/// that range can be taken by any client while our server is down, or, worse, by a client that
/// reconnects to it and reaches itself.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// A port on which nobody listened a moment ago. Somebody may be quicker: whoever binds it has to
/// be ready to try another.
pub(crate) fn free_port() -> u16 {
    for attempt in 0..1_000_u32 {
        // `RandomState` is seeded by the system: parallel test processes do not walk over the same
        // ports.
        let random = RandomState::new().hash_one(attempt);
        let port = FIRST + (random % u64::from(COUNT)) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free port between {FIRST} and {}", FIRST + COUNT);
}
