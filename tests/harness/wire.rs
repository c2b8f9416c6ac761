//! A network that fails on command, for any protocol: TCP proxies that know nothing of what passes
//! over them, one in front of each server of an engine.

mod alias;
mod link;
mod wires;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::network::{Flow, Gateway, Switches};
use alias::Alias;
pub use wires::Wires;

/// The way to one server. It ends with this value, and so do the connections over it.
#[derive(Debug)]
pub struct Wire {
    gateway: Gateway,
    upstream: Arc<str>,
    switches: watch::Sender<Switches>,
    /// Bytes that came from either side, whatever became of them.
    came: Arc<AtomicU64>,
    /// Whether bytes may have been lost since everything passed.
    holed: AtomicBool,
    /// Where servers are said to be, if it is not where they are.
    alias: Option<Alias>,
}

impl Wire {
    /// A wire to `upstream` (`127.0.0.1:5432`) over which everything passes.
    pub async fn start(upstream: impl Into<Arc<str>>) -> Self {
        Self::over(Gateway::bind().await, upstream.into(), None)
    }

    /// A wire to a server that tells its clients where others are: at the same port of `alias`, where the
    /// ways to all of them are.
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
            holed: AtomicBool::new(false),
            alias,
        };
        wire.accept_from(listener);
        wire
    }

    /// `127.0.0.1:PORT`, where clients connect.
    pub fn addr(&self) -> String {
        self.gateway.addr()
    }

    /// Everything passes again, what was held as well, and new connections are welcome. No network
    /// mends a stream with a hole in it: connections that may have lost bytes are ended.
    pub async fn pass(&self) {
        if self.holed.swap(false, Ordering::Relaxed) {
            self.gateway.cut().await;
        }
        self.switches.send_replace(Switches::default());
        if let Some(listener) = self.gateway.bind_again().await {
            self.accept_from(listener);
        }
    }

    /// Ends all connections, and has the system refuse new ones.
    pub async fn cut(&self) {
        self.gateway.refuse().await;
        self.gateway.cut().await;
    }

    /// Nothing passes, either way: connections are accepted and bytes taken, and all is held for
    /// [`pass`](Self::pass).
    pub fn hold(&self) {
        self.hold_replies();
        self.switches.send_modify(|switches| switches.requests = Flow::Hold);
    }

    /// The server gets and executes everything; what it has to say is held for
    /// [`pass`](Self::pass).
    pub fn hold_replies(&self) {
        self.switches.send_modify(|switches| switches.replies = Flow::Hold);
    }

    /// Nothing arrives, either way, and no process is notified.
    pub fn swallow(&self) {
        self.swallow_replies();
        self.switches.send_modify(|switches| switches.requests = Flow::Swallow);
    }

    /// The server gets and executes everything; the client never learns of it.
    pub fn swallow_replies(&self) {
        self.holed.store(true, Ordering::Relaxed);
        self.switches.send_modify(|switches| switches.replies = Flow::Swallow);
    }

    /// Each way takes that much longer, in order, as a long cable does. From the next bytes on.
    pub fn delay(&self, delay: Duration) {
        self.switches.send_modify(|switches| switches.delay = delay);
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.gateway.connections()
    }

    /// How many bytes have come, from either side.
    pub fn came(&self) -> u64 {
        self.came.load(Ordering::Relaxed)
    }

    fn accept_from(&self, listener: TcpListener) {
        let (switches, came) = (self.switches.subscribe(), Arc::clone(&self.came));
        let alias = self.alias;
        self.gateway.accept(listener, Arc::clone(&self.upstream), move |client, server| {
            link::run(client, server, switches.clone(), Arc::clone(&came), alias)
        });
    }
}
