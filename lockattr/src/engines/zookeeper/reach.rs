//! The addresses that the client gets. It would look names up itself, and stay with the first address.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, timeout_at};

use crate::engines::dial::{LONGEST, dial, reachable};
use crate::store::StoreError;

/// How many servers the client gets, each of them several times. After each round through all of them it
/// pauses for twice as long as before, which takes as long as the outage; inside a round it pauses for up to a
/// second. So a round must last.
const PER_ROUND: usize = 20;

/// How long the other look-ups have after the first: one that hangs must not keep the session from being made.
const GRACE: Duration = Duration::from_millis(250);

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
    let look_ups = hosts.iter().map(async |host| match host_and_port(host) {
        Some((name, port)) => reachable(name, port, limit).await.map(Some),
        None => Ok(None),
    });
    found_soon(look_ups).await
}

/// What is found until [`GRACE`] after the first.
async fn found_soon<T: Clone>(
    look_ups: impl ExactSizeIterator<Item = impl Future<Output = io::Result<Option<T>>>>,
) -> Result<Vec<Option<T>>, StoreError> {
    let (mut found, mut refusals) = (vec![None; look_ups.len()], Vec::new());
    let numbered = look_ups.enumerate().map(async |(nth, look_up)| (nth, look_up.await));
    let mut look_ups: FuturesUnordered<_> = numbered.collect();
    // Each look-up ends before that.
    let mut until = Instant::now() + LONGEST;
    while let Ok(Some((nth, outcome))) = timeout_at(until, look_ups.next()).await {
        match outcome {
            Ok(address) => {
                if address.is_some() {
                    until = until.min(Instant::now() + GRACE);
                }
                found[nth] = address;
            }
            Err(error) => refusals.push(error.to_string()),
        }
    }
    match refusals.len() < found.len() {
        true => Ok(found),
        false => Err(StoreError::new(refusals.join("; ")).not_sent()),
    }
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
    use std::future::pending;

    use futures_util::FutureExt;
    use tokio::time::sleep;

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

    /// Red without: the end of the grace, which the first address begins.
    #[tokio::test(start_paused = true)]
    async fn a_look_up_that_hangs_does_not_keep_the_others_from_the_client() {
        let after = |delay: Duration, found| async move {
            sleep(delay).await;
            found
        };
        let look_ups = [
            pending().boxed(),
            after(Duration::ZERO, Err(io::Error::other("not found"))).boxed(),
            after(GRACE, Ok(Some("first"))).boxed(),
            after(GRACE * 3 / 2, Ok(Some("soon after"))).boxed(),
            after(GRACE * 3, Ok(Some("late"))).boxed(),
        ];
        let began = Instant::now();
        let found = found_soon(look_ups.into_iter()).await.unwrap();
        assert_eq!(found, [None, None, Some("first"), Some("soon after"), None]);
        assert_eq!(began.elapsed().as_millis(), 2 * GRACE.as_millis());
    }

    #[tokio::test]
    async fn all_look_ups_that_fail_are_named() {
        let failing =
            ["a", "b"].map(|name| async move { Err::<Option<()>, _>(io::Error::other(name)) });
        let error = found_soon(failing.into_iter()).await.unwrap_err();
        assert!(error.is_not_sent());
        let mut said: Vec<_> = error.to_string().split("; ").map(str::to_owned).collect();
        said.sort();
        assert_eq!(said, ["a", "b"]);
    }
}
