//! The parts that all proxies share: the listening port, and the switches for both directions.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::socket::{Shutdown, shutdown};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::eventually::Backoff;
use crate::port::Port;

/// The treatment of the bytes in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Flow {
    #[default]
    Pass,
    /// The bytes are read from the sender and held, in order.
    Hold,
    /// The bytes are read from the sender and dropped.
    Swallow,
}

/// The switches, which every connection watches.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Switches {
    pub(crate) requests: Flow,
    pub(crate) replies: Flow,
    pub(crate) delay: Duration,
    /// How long each byte takes, behind those before it.
    pub(crate) per_byte: Duration,
}

/// Waits while one direction is held, and returns its flow.
pub(crate) async fn wait_for_flow(
    switches: &mut watch::Receiver<Switches>,
    direction: fn(&Switches) -> Flow,
) -> Flow {
    let now = switches.wait_for(|now| direction(now) != Flow::Hold).await;
    // Without its switches the proxy is gone, and this connection is about to end.
    now.map_or(Flow::Pass, |now| direction(&now))
}

/// A listener on a loopback port that forwards each connection to one server. The listener and its
/// connections end when this value is dropped.
#[derive(Debug)]
pub(crate) struct Gateway {
    addr: SocketAddrV4,
    /// Keeps the port reserved; `None` for an address that needs no reservation.
    _port: Option<Port>,
    connections: Arc<Mutex<JoinSet<()>>>,
    accepting: Mutex<Option<(Arc<TcpListener>, JoinHandle<()>)>>,
}

impl Gateway {
    /// Binds a free port. The system accepts connections at once, but they are forwarded only after
    /// [`accept`](Self::accept).
    pub(crate) async fn bind() -> (Self, TcpListener) {
        let port = Port::free();
        let addr = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port.number());
        Self::listening(addr, Some(port)).await
    }

    /// Binds an address that no other process uses.
    pub(crate) async fn bind_at(addr: SocketAddrV4) -> (Self, TcpListener) {
        Self::listening(addr, None).await
    }

    async fn listening(addr: SocketAddrV4, port: Option<Port>) -> (Self, TcpListener) {
        let listener = listen(addr).await;
        let gateway =
            Self { addr, _port: port, connections: Arc::default(), accepting: Mutex::new(None) };
        (gateway, listener)
    }

    pub(crate) fn addr(&self) -> String {
        self.addr.to_string()
    }

    /// Runs `forward` for each new connection, between its client and `upstream`.
    pub(crate) fn accept<L>(
        &self,
        listener: TcpListener,
        upstream: Arc<str>,
        forward: impl Fn(TcpStream, TcpStream) -> L + Send + Sync + 'static,
    ) where
        L: Future<Output = ()> + Send + 'static,
    {
        let (connections, forward) = (Arc::clone(&self.connections), Arc::new(forward));
        let listener = Arc::new(listener);
        let listens = Arc::clone(&listener);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listens.accept().await {
                let (upstream, forward) = (Arc::clone(&upstream), Arc::clone(&forward));
                locked(&connections).spawn(async move {
                    // If the server is down, returning closes the client's connection.
                    let Ok(server) = TcpStream::connect(&*upstream).await else {
                        return;
                    };
                    for stream in [&client, &server] {
                        // The proxy must not add latency. If the option cannot be set, it is only
                        // slower.
                        stream.set_nodelay(true).ok();
                    }
                    forward(client, server).await;
                });
            }
        });
        *locked(&self.accepting) = Some((listener, accepting));
    }

    /// Closes all connections, but accepts new ones. Returns once both sides are closed.
    pub(crate) async fn cut(&self) {
        let mut connections = std::mem::take(&mut *locked(&self.connections));
        connections.shutdown().await;
    }

    /// Closes the listener, so that the system refuses new connections. Open connections continue.
    pub(crate) async fn refuse(&self) {
        let accepting = locked(&self.accepting).take();
        if let Some((listener, accepting)) = accepting {
            accepting.abort();
            accepting.await.ok();
            // A child process that another test starts has the listener until its `exec`: closed here only, it would
            // still take connections.
            shutdown(listener.as_raw_fd(), Shutdown::Both).expect("it listens");
        }
    }

    /// Binds the same port again after [`refuse`](Self::refuse); `None` if it is still open.
    pub(crate) async fn bind_again(&self) -> Option<TcpListener> {
        if locked(&self.accepting).is_some() {
            return None;
        }
        Some(listen(self.addr).await)
    }

    /// Returns the number of open connections.
    pub(crate) fn connections(&self) -> usize {
        let mut connections = locked(&self.connections);
        while connections.try_join_next().is_some() {}
        connections.len()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some((_, accepting)) = locked(&self.accepting).take() {
            accepting.abort();
        }
        locked(&self.connections).abort_all();
    }
}

async fn listen(addr: SocketAddrV4) -> TcpListener {
    // A child process that another test starts has all our sockets until its `exec`, even a
    // listener that was closed here. Until then the address is in use.
    let mut backoff = Backoff::new();
    loop {
        match TcpListener::bind(addr).await {
            Ok(listener) => return listener,
            Err(error) if error.kind() == ErrorKind::AddrInUse && backoff.pause().await => {}
            Err(error) => panic!("{addr}: {error}"),
        }
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps, unless the time has come: even a sleep into the past ends at the next millisecond.
pub(crate) async fn wait_until(due: Instant) {
    if due > Instant::now() {
        sleep_until(due).await;
    }
}
