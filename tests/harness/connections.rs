//! The connections of processes, as Linux lists them.

use std::collections::BTreeSet;
use std::fs;

/// The state of an established connection in `/proc/self/net/tcp`.
const ESTABLISHED: &str = "01";

/// The state of a connection whose other end is closed.
const CLOSE_WAIT: &str = "08";

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
    connections_of("self").into_iter().map(|connection| connection.peer).collect()
}

/// The ports of a connection at this end and at the other.
struct Ports {
    own: u16,
    peer: u16,
}

/// The other ends of the connections that a process has now, which are remembered when it has
/// ended: their inodes, because another client may get its ports then.
pub(crate) struct OtherEnds(BTreeSet<String>);

impl OtherEnds {
    /// Returns those of the process with this id.
    pub(crate) fn of(process: u32) -> Self {
        let connections = connections_of(&process.to_string());
        let other_ends = rows("self").filter(|(end, ..)| {
            connections.iter().any(|one| (one.own, one.peer) == (end.peer, end.own))
        });
        let inodes = other_ends.map(|(_, _, inode)| inode);
        // What no server has accepted yet has none.
        Self(inodes.filter(|inode| inode != "0").collect())
    }

    /// Returns whether some server still has one of them: it has not noticed yet that its client is
    /// gone.
    pub(crate) fn are_open(&self) -> bool {
        let half_open = [ESTABLISHED, CLOSE_WAIT];
        rows("self")
            .any(|(_, state, inode)| half_open.contains(&&*state) && self.0.contains(&inode))
    }
}

/// Returns the established connections of a process over IPv4.
fn connections_of(process: &str) -> Vec<Ports> {
    let own: BTreeSet<_> = fs::read_dir(format!("/proc/{process}/fd"))
        .expect("Linux lists the descriptors")
        .filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok())
        .filter_map(|target| {
            Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let is_own = |state: &str, inode: &str| state == ESTABLISHED && own.contains(inode);
    let rows = rows(process).filter(|(_, state, inode)| is_own(state, inode));
    rows.map(|(ports, ..)| ports).collect()
}

/// Returns the ports, the state and the inode of each connection over IPv4 that a process can see.
fn rows(process: &str) -> impl Iterator<Item = (Ports, String, String)> {
    let table = fs::read_to_string(format!("/proc/{process}/net/tcp"));
    let table = table.expect("Linux lists the connections");
    let port = |address: &str| u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok();
    let row = |line: &str| {
        // `sl local_address rem_address st tx:rx tr:tm->when retrnsmt uid timeout inode`
        let fields: Vec<_> = line.split_whitespace().take(10).collect();
        let [_, own, peer, state, .., inode] = fields[..] else { return None };
        let ports = Ports { own: port(own)?, peer: port(peer)? };
        Some((ports, state.to_owned(), inode.to_owned()))
    };
    table.lines().skip(1).filter_map(row).collect::<Vec<_>>().into_iter()
}
