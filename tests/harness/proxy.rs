//! A network that fails on command: a TCP proxy between a client and a Redis server, with switches
//! for all traffic and rules for single requests.

mod connection;
mod replies;
mod resp;
mod script;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::network::{Flow, Gateway, Switches, locked, wait_for_flow, wait_until};

pub use script::Fault;
use script::Script;
pub(crate) use script::digests;

/// The switches and the script that all connections of a proxy share.
#[derive(Debug, Clone)]
struct Controls {
    switches: watch::Receiver<Switches>,
    script: Arc<Mutex<Script>>,
}

impl Controls {
    /// Waits while one direction is held, and returns its flow.
    async fn flow(&mut self, direction: fn(&Switches) -> Flow) -> Flow {
        wait_for_flow(&mut self.switches, direction).await
    }
}

/// A TCP proxy on its own loopback port. The proxy and its connections end when this value is
/// dropped.
///
/// It supports RESP, but neither TLS nor features without one reply for each request: `CLIENT
/// REPLY`, `MONITOR`, and RESP2 subscribers. Only whole requests and replies pass.
#[derive(Debug)]
pub struct Proxy {
    gateway: Gateway,
    upstream: Arc<str>,
    switches: watch::Sender<Switches>,
    script: Arc<Mutex<Script>>,
}

impl Proxy {
    /// Starts a proxy to `upstream` (`127.0.0.1:6390`), without faults.
    pub async fn start(upstream: impl Into<Arc<str>>) -> Self {
        let (gateway, listener) = Gateway::bind().await;
        let proxy = Self {
            gateway,
            upstream: upstream.into(),
            switches: watch::Sender::new(Switches::default()),
            script: Arc::new(Mutex::new(Script::new())),
        };
        proxy.accept_from(listener);
        proxy
    }

    /// Returns `127.0.0.1:PORT`, where clients connect.
    pub fn addr(&self) -> String {
        self.gateway.addr()
    }

    /// Ends all faults: both directions pass without delay, held bytes are sent, and all rules are
    /// removed. A fault that a request has already met still applies to its reply.
    ///
    /// A connection that has lost bytes stays silent, because a TCP stream cannot have gaps. Use
    /// [`cut`](Self::cut) to close it.
    pub fn pass(&self) {
        self.script().pass();
        self.switches.send_replace(Switches::default());
    }

    /// Applies `fault` to the next such request on any connection, even if an earlier fault keeps
    /// that request from the server. Several faults apply in the order of the calls.
    ///
    /// A command is named by its first word in lower case, one of lockattr's scripts by its file:
    /// `next("acquire", …)`.
    pub fn next(&self, command: &str, fault: Fault) {
        self.script().next(command, fault);
    }

    /// Applies `fault` to every such request, after the faults of [`next`](Self::next).
    pub fn always(&self, command: &str, fault: Fault) {
        self.script().always(command, fault);
    }

    /// Returns the number of such requests from clients, whatever fault they met.
    pub fn seen(&self, command: &str) -> usize {
        self.script().counts(command).seen
    }

    /// Returns the number of such requests whose replies were sent to clients, from the server or
    /// from [`Fault::Answer`].
    pub fn answered(&self, command: &str) -> usize {
        self.script().counts(command).answered
    }

    /// Returns the names of all requests of all connections, in the order of arrival.
    pub fn log(&self) -> Vec<String> {
        self.script().log.clone()
    }

    /// Clears the log, but not the counts.
    pub fn clear_log(&self) {
        self.script().log.clear();
    }

    /// Holds both directions: connections are accepted and bytes read, but all is held until
    /// [`pass`](Self::pass).
    pub fn freeze(&self) {
        self.switches.send_modify(|switches| {
            switches.requests = Flow::Hold;
            switches.replies = Flow::Hold;
        });
    }

    /// Drops replies: the server executes everything, but the client never receives a reply.
    pub fn swallow_replies(&self) {
        self.switches.send_modify(|switches| switches.replies = Flow::Swallow);
    }

    /// Drops requests: the server receives none, while its replies still pass.
    pub fn swallow_requests(&self) {
        self.switches.send_modify(|switches| switches.requests = Flow::Swallow);
    }

    /// Drops the next `count` subscription messages, as if the server had lost them. All else
    /// passes. [`seen`](Self::seen) and [`answered`](Self::answered) count messages by the name
    /// `message`.
    pub fn swallow_messages(&self, count: usize) {
        self.script().messages_to_swallow = count;
    }

    /// Delays both directions, in order, like a long cable. Applies from the next bytes on.
    pub fn delay(&self, delay: Duration) {
        self.switches.send_modify(|switches| switches.delay = delay);
    }

    /// Closes all connections, but accepts new ones. Returns once both sides are closed.
    pub async fn cut(&self) {
        self.gateway.cut().await;
    }

    /// Closes the listener, so that the system refuses new connections. Open connections continue.
    pub async fn refuse(&self) {
        self.gateway.refuse().await;
    }

    /// Accepts new connections again after [`refuse`](Self::refuse), on the same port.
    ///
    /// # Panics
    ///
    /// If another process has taken the port meanwhile.
    pub async fn accept(&self) {
        if let Some(listener) = self.gateway.bind_again().await {
            self.accept_from(listener);
        }
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.gateway.connections()
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        locked(&self.script)
    }

    fn accept_from(&self, listener: TcpListener) {
        let (switches, script) = (self.switches.subscribe(), Arc::clone(&self.script));
        self.gateway.accept(listener, Arc::clone(&self.upstream), move |client, server| {
            let controls = Controls { switches: switches.clone(), script: Arc::clone(&script) };
            connection::run(client, server, controls)
        });
    }
}
