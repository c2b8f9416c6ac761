//! The addresses that the client gets. It would look names up itself, and stay with the first address.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;

use crate::engines::dial::{dial, reachable};
use crate::store::StoreError;

/// How many servers the client gets, each of them several times. After each round through all of them it
/// pauses for twice as long as before, which takes as long as the outage; inside a round it pauses for up to a
/// second. So a round must last.
const PER_ROUND: usize = 20;

/// A server as the URL or the program names it, without a scheme.
fn host_and_port(host: &str) -> Option<(&str, u16)> {
    let plain = host.strip_prefix("tcp://").unwrap_or(host);
    let (name, port) = match plain.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()?),
        _ => (plain, super::config::DEFAULT_PORT),
    };
    // The client's own TLS verifies the name.
    (!plain.contains("://")).then_some((name, port))
}

/// Looks the servers up. Those without an address are left to the client, unless none has one.
pub(super) async fn look_up(
    hosts: &[String],
    limit: Duration,
) -> Result<Vec<Option<SocketAddr>>, StoreError> {
    let found = join_all(hosts.iter().map(async |host| match host_and_port(host) {
        Some((name, port)) => reachable(name, port, limit).await.map(Some),
        None => Ok(None),
    }));
    let found = found.await;
    if found.iter().all(Result::is_err) {
        let said: Vec<_> = found.iter().filter_map(|found| found.as_ref().err()).collect();
        let said: Vec<_> = said.iter().map(ToString::to_string).collect();
        return Err(StoreError::new(said.join("; ")).not_sent());
    }
    Ok(found.into_iter().map(|found| found.ok().flatten()).collect())
}

/// The client's list. A name comes after its address, which may be another one's later.
pub(super) fn list(hosts: Vec<String>, found: &[Option<SocketAddr>]) -> Vec<String> {
    let addresses: Vec<_> = found.iter().flatten().map(ToString::to_string).collect();
    let unknown =
        |(host, found): (&String, &Option<SocketAddr>)| found.is_none().then(|| host.clone());
    let mut often: Vec<_> = addresses;
    often.extend(hosts.iter().zip(found).filter_map(unknown));
    let rounds = PER_ROUND.div_ceil(often.len().max(1));
    let mut all: Vec<_> = std::iter::repeat_n(often, rounds).flatten().collect();
    for host in hosts {
        if !all.contains(&host) {
            all.push(host);
        }
    }
    all
}

/// What the servers say that cannot be reached.
pub(super) async fn refusals(hosts: &[String], limit: Duration) -> Option<String> {
    let tried = join_all(hosts.iter().map(async |host| {
        let (name, port) = host_and_port(host)?;
        Some(dial(name, port, limit).await.err()?.to_string())
    }));
    let said: Vec<_> = tried.await.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_with_and_without_its_port() {
        assert_eq!(host_and_port("tcp://a:1"), Some(("a", 1)));
        assert_eq!(host_and_port("a"), Some(("a", 2181)));
        assert_eq!(host_and_port("[::1]:7"), Some(("[::1]", 7)));
        assert_eq!(host_and_port("[::1]"), Some(("[::1]", 2181)));
        assert_eq!(host_and_port("tcp+tls://a:1"), None);
    }

    /// Red without: the repetition. The client then pauses for as long as the outage.
    #[test]
    fn a_round_of_the_client_lasts_and_a_name_comes_once() {
        let found = [Some("10.0.0.1:1".parse().unwrap()), None];
        let all = list(vec!["a:1".into(), "b:1".into()], &found);
        let count = |host: &str| all.iter().filter(|each| *each == host).count();
        assert_eq!((count("10.0.0.1:1"), count("b:1"), count("a:1")), (10, 10, 1));
    }
}
