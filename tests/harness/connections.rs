//! Counts the connections of this process.

use std::collections::BTreeSet;
use std::fs;

/// The state of an established connection in `/proc/self/net/tcp`.
const ESTABLISHED: &str = "01";

/// Returns how many connections this process has to the ports of these addresses. Other processes'
/// do not count, nor the servers' among themselves.
///
/// # Panics
///
/// If an address has no port.
pub fn own_connections(addrs: &[String]) -> usize {
    let port = |addr: &String| addr.rsplit_once(':')?.1.parse::<u16>().ok();
    let ports: BTreeSet<_> = addrs.iter().map(|addr| port(addr).expect("a port")).collect();
    own_peers().iter().filter(|port| ports.contains(port)).count()
}

/// Returns the peer's port of each connection that this process has over IPv4.
fn own_peers() -> Vec<u16> {
    let table = fs::read_to_string("/proc/self/net/tcp").expect("Linux lists the connections");
    let own: BTreeSet<_> = fs::read_dir("/proc/self/fd")
        .expect("Linux lists the descriptors")
        .filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok())
        .filter_map(|target| {
            Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let peer = |line: &str| {
        // `sl local_address rem_address st tx:rx tr:tm->when retrnsmt uid timeout inode`
        let fields: Vec<_> = line.split_whitespace().take(10).collect();
        let [_, _, peer, state, .., inode] = fields[..] else { return None };
        let is_own = state == ESTABLISHED && own.contains(inode);
        u16::from_str_radix(peer.rsplit_once(':')?.1, 16).ok().filter(|_| is_own)
    };
    table.lines().skip(1).filter_map(peer).collect()
}
