//! A network that fails on command, for any protocol: TCP proxies that do not parse what they
//! forward, one in front of each server of an engine.

mod alias;
mod connection;
mod mutation;
mod wires;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::network::{Flow, Gateway, Switches};
use alias::Alias;
use mutation::Mutation;
pub use wires::Wires;

/// A TCP proxy to one server. The proxy and its connections end when this value is dropped.
#[derive(Debug)]
pub struct Wire {
    gateway: Gateway,
    upstream: Arc<str>,
    switches: watch::Sender<Switches>,
    /// The number of bytes received from either side, even if they were dropped later.
    came: Arc<AtomicU64>,
    /// Until when each direction carries earlier bytes, if the wire is slow.
    busy: Arc<connection::Busy>,
    /// Whether bytes may have been lost since the last [`pass`](Self::pass).
    lost_bytes: AtomicBool,
    /// The address that replaces the servers' own in their replies, if they contain it.
    alias: Option<Alias>,
    mutation: Mutation,
}

impl Wire {
    /// Starts a wire to `upstream` (`127.0.0.1:5432`), without faults.
    pub async fn start(upstream: impl Into<Arc<str>>) -> Self {
        Self::over(Gateway::bind().await, upstream.into(), None)
    }

    /// Starts a wire to a server that sends clients the addresses of other servers. All these wires
    /// listen on the address `alias`, each on the port of its server.
    async fn start_at(alias: Alias, upstream: String) -> Self {
        let (_, port) = upstream.rsplit_once(':').expect("an address with a port");
        let addr = alias.at(port.parse().expect("a port"));
        Self::over(Gateway::bind_at(addr).await, upstream.into(), Some(alias))
    }

    fn over(
        (gateway, listener): (Gateway, TcpListener),
        upstream: Arc<str>,
        alias: Option<Alias>,
    ) -> Self {
        let wire = Self {
            gateway,
            upstream,
            switches: watch::Sender::new(Switches::default()),
            came: Arc::default(),
            busy: Arc::default(),
            lost_bytes: AtomicBool::new(false),
            alias,
            mutation: Mutation::default(),
        };
        wire.accept_from(listener);
        wire
    }

    /// Returns the address where clients connect, usually `127.0.0.1:PORT`.
    pub fn addr(&self) -> String {
        self.gateway.addr()
    }

    /// Ends all faults: everything passes, held bytes are sent, and new connections are accepted.
    /// Connections that may have lost bytes are closed, because a TCP stream cannot have gaps.
    pub async fn pass(&self) {
        if self.lost_bytes.swap(false, Ordering::Relaxed) {
            self.gateway.cut().await;
        }
        self.mutation.set(None);
        self.switches.send_replace(Switches::default());
        if let Some(listener) = self.gateway.bind_again().await {
            self.accept_from(listener);
        }
    }

    /// Closes all connections, and the listener, so that the system refuses new ones.
    pub async fn cut(&self) {
        self.gateway.refuse().await;
        self.gateway.cut().await;
    }

    /// Holds both directions: connections are accepted and bytes read, but all is held until
    /// [`pass`](Self::pass).
    pub fn hold(&self) {
        self.hold_replies();
        self.switches.send_modify(|switches| switches.requests = Flow::Hold);
    }

    /// Holds replies: the server executes everything, but its replies are held until
    /// [`pass`](Self::pass).
    pub fn hold_replies(&self) {
        self.switches.send_modify(|switches| switches.replies = Flow::Hold);
    }

    /// Drops the bytes of both directions. Neither side is notified.
    pub fn swallow(&self) {
        self.swallow_replies();
        self.switches.send_modify(|switches| switches.requests = Flow::Swallow);
    }

    /// Drops replies: the server executes everything, but the client never receives a reply.
    pub fn swallow_replies(&self) {
        self.lost_bytes.store(true, Ordering::Relaxed);
        self.switches.send_modify(|switches| switches.replies = Flow::Swallow);
    }

    /// Delays both directions, in order, like a long cable. Applies from the next bytes on.
    pub fn delay(&self, delay: Duration) {
        self.switches.send_modify(|switches| switches.delay = delay);
    }

    /// Changes each piece that the server sends from now on, until [`pass`](Self::pass).
    pub fn mutate(&self, change: impl FnMut(&mut Vec<u8>) + Send + 'static) {
        self.mutation.set(Some(Box::new(change)));
    }

    /// Carries at most so many bytes a second in each direction, over all connections together. Applies from the next
    /// bytes on.
    pub fn carry(&self, bytes_per_second: u32) {
        let per_byte = Duration::from_secs(1) / bytes_per_second;
        self.switches.send_modify(|switches| switches.per_byte = per_byte);
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.gateway.connections()
    }

    /// Returns the number of bytes received from either side.
    pub fn came(&self) -> u64 {
        self.came.load(Ordering::Relaxed)
    }

    fn accept_from(&self, listener: TcpListener) {
        let (came, busy) = (Arc::clone(&self.came), Arc::clone(&self.busy));
        let (switches, alias) = (self.switches.subscribe(), self.alias);
        let mutation = self.mutation.clone();
        self.gateway.accept(listener, Arc::clone(&self.upstream), move |client, server| {
            let traffic = (Arc::clone(&came), Arc::clone(&busy));
            let edits = (alias, Some(mutation.clone()));
            connection::run(client, server, switches.clone(), traffic, edits)
        });
    }
}
