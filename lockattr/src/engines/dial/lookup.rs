//! Looks names up, on threads of its own.
//!
//! The system's resolver blocks its thread, and knows what the machine's administrator configured (`/etc/hosts`,
//! `nsswitch.conf`, search domains), which a resolver in Rust would have to repeat.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::thread;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use super::no_answer;

/// How long a look-up may take. The system asks a second name server after five seconds.
const LIMIT: Duration = Duration::from_secs(15);

/// How many look-ups of this process may be under way, each on a thread. The others wait for their turn.
const MOST: usize = 32;

static TURNS: Semaphore = Semaphore::const_new(MOST);

/// The addresses of a host, in the system's order. One that is written as an address needs no look-up.
pub(in crate::engines) async fn lookup(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let name = host.to_owned();
    let found = by(move || Ok((name.as_str(), port).to_socket_addrs()?.collect()), LIMIT).await;
    match found {
        Ok(addresses) if addresses.is_empty() => {
            Err(failed(host, &io::Error::new(ErrorKind::NotFound, "it has no address")))
        }
        found => found.map_err(|error| failed(host, &error)),
    }
}

fn failed(host: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the name `{host}` was not found: {error}"))
}

/// Runs a look-up on a thread.
async fn by(
    look_up: impl FnOnce() -> io::Result<Vec<SocketAddr>> + Send + 'static,
    limit: Duration,
) -> io::Result<Vec<SocketAddr>> {
    let found = async {
        // Held by the thread, because the look-up goes on if its caller gives up.
        let turn = TURNS.acquire().await.map_err(io::Error::other)?;
        let (send, found) = oneshot::channel();
        thread::Builder::new().name("lockattr-lookup".into()).spawn(move || {
            let _turn = turn;
            drop(send.send(look_up()));
        })?;
        let cut_off = |_| io::Error::other("the look-up was cut off");
        found.await.map_err(cut_off)?
    };
    timeout(limit, found).await.unwrap_or_else(|_| Err(no_answer(limit)))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// With tokio's own look-up, this would wait for the thread that the user's work has.
    #[test]
    fn a_name_is_looked_up_while_the_runtime_has_no_thread_for_blocking_work() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.max_blocking_threads(1).enable_all().build().unwrap();
        let (end, work) = mpsc::channel::<()>();
        let _working = runtime.spawn_blocking(move || work.recv());
        let found = runtime.block_on(lookup("localhost", 7)).unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 7));
        drop(end);
    }

    #[tokio::test]
    async fn a_look_up_that_panics_is_an_error() {
        let outcome = by(|| panic!("as a module of the system's might"), LIMIT).await;
        assert_eq!(outcome.unwrap_err().to_string(), "the look-up was cut off");
        assert!(lookup("127.0.0.1", 7).await.is_ok());
    }

    #[tokio::test]
    async fn a_name_without_an_address_is_named() {
        let error = lookup("nowhere.invalid", 7).await.unwrap_err().to_string();
        assert!(error.starts_with("the name `nowhere.invalid` was not found: "), "{error}");
    }
}
