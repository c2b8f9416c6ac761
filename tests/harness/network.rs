//! What all proxies have in common: the port where connections come in, and the switches for what
//! passes over them.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::eventually::Patience;
use crate::port::Port;

/// What happens to the bytes of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Flow {
    #[default]
    Pass,
    /// Taken from the sender and kept for later, in order.
    Hold,
    /// Taken from the sender and dropped.
    Swallow,
}

/// The switches, as every connection sees them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Switches {
    pub(crate) requests: Flow,
    pub(crate) replies: Flow,
    pub(crate) delay: Duration,
}

/// How one direction flows, as soon as it does.
pub(crate) async fn flowing(
    switches: &mut watch::Receiver<Switches>,
    direction: fn(&Switches) -> Flow,
) -> Flow {
    let now = switches.wait_for(|now| direction(now) != Flow::Hold).await;
    // The proxy is gone when its switches are; so will the connection be.
    now.map_or(Flow::Pass, |now| direction(&now))
}

/// A loopback port of its own, from which each connection goes on to one server. It ends with this
/// value, and so do the connections.
#[derive(Debug)]
pub(crate) struct Gateway {
    addr: SocketAddrV4,
    /// Kept, where it is a port of its own.
    _port: Option<Port>,
    links: Arc<Mutex<JoinSet<()>>>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

impl Gateway {
    /// Binds the port. No process is let in before [`accept`](Self::accept), though the system answers.
    pub(crate) async fn bind() -> (Self, TcpListener) {
        let port = Port::free();
        let addr = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port.number());
        Self::listening(addr, Some(port)).await
    }

    /// The same at an address that no other process asks for.
    pub(crate) async fn bind_at(addr: SocketAddrV4) -> (Self, TcpListener) {
        Self::listening(addr, None).await
    }

    async fn listening(addr: SocketAddrV4, port: Option<Port>) -> (Self, TcpListener) {
        let listener = listen(addr).await;
        let gateway =
            Self { addr, _port: port, links: Arc::default(), accepting: Mutex::new(None) };
        (gateway, listener)
    }

    pub(crate) fn addr(&self) -> String {
        self.addr.to_string()
    }

    /// Has `link` carry each new connection, from its client to `upstream`.
    pub(crate) fn accept<L>(
        &self,
        listener: TcpListener,
        upstream: Arc<str>,
        link: impl Fn(TcpStream, TcpStream) -> L + Send + Sync + 'static,
    ) where
        L: Future<Output = ()> + Send + 'static,
    {
        let (links, link) = (Arc::clone(&self.links), Arc::new(link));
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (upstream, link) = (Arc::clone(&upstream), Arc::clone(&link));
                locked(&links).spawn(async move {
                    // A server that is down closes the client's connection: it is dropped here.
                    let Ok(server) = TcpStream::connect(&*upstream).await else {
                        return;
                    };
                    for stream in [&client, &server] {
                        // Ours must be no slower than a cable. Where it cannot be set, it is only
                        // slower.
                        stream.set_nodelay(true).ok();
                    }
                    link(client, server).await;
                });
            }
        });
        *locked(&self.accepting) = Some(accepting);
    }

    /// Ends all connections; new ones are welcome. Returns once they are closed, on both sides.
    pub(crate) async fn cut(&self) {
        let mut links = std::mem::take(&mut *locked(&self.links));
        links.shutdown().await;
    }

    /// New connections are refused by the system, as if no process listened. Those that are open go on.
    pub(crate) async fn refuse(&self) {
        let accepting = locked(&self.accepting).take();
        if let Some(accepting) = accepting {
            accepting.abort();
            // The listener is closed when its task is gone.
            accepting.await.ok();
        }
    }

    /// The same port again, after [`refuse`](Self::refuse); `None` where it is open.
    pub(crate) async fn bind_again(&self) -> Option<TcpListener> {
        if locked(&self.accepting).is_some() {
            return None;
        }
        Some(listen(self.addr).await)
    }

    /// How many connections are open.
    pub(crate) fn connections(&self) -> usize {
        let mut links = locked(&self.links);
        while links.try_join_next().is_some() {}
        links.len()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(accepting) = locked(&self.accepting).take() {
            accepting.abort();
        }
        locked(&self.links).abort_all();
    }
}

async fn listen(addr: SocketAddrV4) -> TcpListener {
    // A process that another test starts has all our sockets until its program begins, also a listener that is closed
    // here.
    let mut patience = Patience::new(Duration::from_secs(10));
    loop {
        match TcpListener::bind(addr).await {
            Ok(listener) => return listener,
            Err(error) if error.kind() == ErrorKind::AddrInUse && patience.pause().await => {}
            Err(error) => panic!("{addr}: {error}"),
        }
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
