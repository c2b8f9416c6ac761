//! How every engine opens a TCP connection: it looks the name up, tries the addresses side by side as RFC 8305
//! says, and keeps the first that connects.
//!
//! The drivers would try one address after the other, for as long as the system repeats a packet that a firewall
//! drops, and look names up on the threads that the runtime has for blocking work, which may all be the user's.

mod failure;
mod keep_alive;
mod lookup;
mod race;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

pub(in crate::engines) use failure::no_answer;
pub(in crate::engines) use keep_alive::KeepAlive;
pub(in crate::engines) use lookup::lookup;

/// Longer than a look-up and all attempts, of a host with dozens of addresses.
pub(in crate::engines) const LONGEST: Duration = Duration::from_secs(60);

/// How many times as long as one attempt to connect a handshake may take: a handshake of TLS, or a login, has up to
/// four round trips where an attempt has one.
const ROUND_TRIPS: u32 = 4;

/// How long TLS may take, and then the login, of a server whose addresses have `connect_timeout` each.
pub(in crate::engines) fn handshake_limit(connect_timeout: Duration) -> Duration {
    connect_timeout.saturating_mul(ROUND_TRIPS)
}

/// Connects to a host, a name or an address. `limit` is for one attempt at one address.
pub(in crate::engines) async fn dial(
    host: &str,
    port: u16,
    limit: Duration,
) -> io::Result<TcpStream> {
    first_of(lookup(host, port).await?, limit).await
}

/// Connects to the first of these addresses that accepts.
pub(in crate::engines) async fn first_of(
    addresses: Vec<SocketAddr>,
    limit: Duration,
) -> io::Result<TcpStream> {
    let connect = |address: SocketAddr| async move {
        let stream = timeout(limit, TcpStream::connect(address));
        let stream = stream.await.unwrap_or_else(|_| Err(no_answer(limit)))?;
        // Small requests would wait for the peer's delayed ACK.
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    race::first(addresses, connect).await
}

/// The address for a driver that opens its connections itself: that of the host which accepts first. A host with
/// one address is not tried, because a connection without a login is an aborted one to the server.
pub(in crate::engines) async fn reachable(
    host: &str,
    port: u16,
    limit: Duration,
) -> io::Result<SocketAddr> {
    reachable_of(lookup(host, port).await?, limit).await
}

/// The same for addresses that are known.
pub(in crate::engines) async fn reachable_of(
    addresses: Vec<SocketAddr>,
    limit: Duration,
) -> io::Result<SocketAddr> {
    match addresses.as_slice() {
        [only] => Ok(*only),
        _ => first_of(addresses, limit).await?.peer_addr(),
    }
}
