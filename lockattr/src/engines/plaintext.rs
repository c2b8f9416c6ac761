//! Says in the log that a connection to another machine is not encrypted.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::platform::sync::Mutex;

/// Warns about a store whose connections cross a network in plaintext: once in a process for each
/// `address`, which has no password in it. `advice` says what to write, such as
/// "add `sslmode=verify-full` to the URL".
pub(super) fn warn_once(address: &str, advice: &str) {
    static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if WARNED.lock().insert(address.to_owned()) {
        tracing::warn!(
            server.address = address,
            "the connections to this server are not encrypted: others on the network can read \
             passwords and owner tokens, and can answer in the server's place; {advice}"
        );
    }
}

/// Whether `host` is another machine: not a path of a Unix socket, and not the loopback interface.
pub(super) fn is_remote(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_socket = host.is_empty() || host.starts_with(['/', '@']);
    let is_loopback = host.parse().map_or(host == "localhost", |ip: IpAddr| ip.is_loopback());
    !is_socket && !is_loopback
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_unix_sockets_are_not_remote() {
        for host in ["", "localhost", "127.0.0.1", "127.8.9.10", "::1", "[::1]", "/run/db", "@db"] {
            assert!(!is_remote(host), "{host}");
        }
        for host in ["db.example", "10.0.0.1", "[fd00::1]", "localhost.example", "0.0.0.0"] {
            assert!(is_remote(host), "{host}");
        }
    }
}
