//! Tries addresses side by side, as RFC 8305 says.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::sleep;

use super::failure;

/// How long an attempt is alone before the next address is tried too (RFC 8305, section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// The first connection. The other attempts are dropped.
pub(super) async fn first<T, F>(
    addresses: Vec<SocketAddr>,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<T>
where
    F: Future<Output = io::Result<T>>,
{
    let mut waiting = interleaved(addresses).into_iter();
    let (mut attempts, mut refusals) = (FuturesUnordered::new(), Vec::new());
    loop {
        match waiting.next() {
            Some(address) => {
                let attempt = connect(address);
                attempts.push(async move { (address, attempt.await) });
            }
            None if attempts.is_empty() => return Err(failure::of(refusals)),
            None => {}
        }
        tokio::select! {
            Some((address, outcome)) = attempts.next() => match outcome {
                Ok(connection) => return Ok(connection),
                Err(error) => refusals.push((address, error)),
            },
            () = sleep(HEAD_START), if waiting.len() > 0 => {}
        }
    }
}

/// The addresses in their order, but the families by turns.
fn interleaved(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let is_ipv6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == is_ipv6);
    let count = first.len() + other.len();
    let (mut first, mut other) = (first.into_iter(), other.into_iter());
    let mut turns = Vec::with_capacity(count);
    while turns.len() < count {
        turns.extend(first.next());
        turns.extend(other.next());
    }
    turns
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::io::ErrorKind;

    use super::*;
    use crate::platform::sync::Mutex;

    fn addresses(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn the_families_take_turns_in_the_order_of_the_system() {
        let turns = interleaved(addresses(&["[::1]:1", "[::2]:1", "1.1.1.1:1", "[::3]:1"]));
        assert_eq!(turns, addresses(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"]));
    }

    /// Red without: the head start, which lets the second address in.
    #[tokio::test(start_paused = true)]
    async fn an_address_that_drops_packets_does_not_keep_the_next_from_connecting() {
        let connect = |address: SocketAddr| async move {
            if address.is_ipv6() { pending().await } else { Ok(address) }
        };
        let made = first(addresses(&["[::1]:1", "1.1.1.1:1"]), connect).await;
        assert_eq!(made.unwrap(), "1.1.1.1:1".parse().unwrap());
    }

    /// Red without: the turn of the next address after a refusal.
    #[tokio::test(start_paused = true)]
    async fn an_address_that_refuses_does_not_use_up_a_head_start() {
        let (began, tried) = (tokio::time::Instant::now(), Mutex::new(0));
        let connect = |_| {
            *tried.lock() += 1;
            async { Err::<(), _>(ErrorKind::ConnectionRefused.into()) }
        };
        let refused = first(addresses(&["[::1]:1", "1.1.1.1:1"]), connect).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "[::1]:1: connection refused; 1.1.1.1:1: connection refused"
        );
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert_eq!((*tried.lock(), began.elapsed()), (2, Duration::ZERO));
    }
}
