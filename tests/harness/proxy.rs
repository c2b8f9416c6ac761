//! A network that fails on command: a TCP proxy between a client and its server, with switches for
//! all that passes and rules for single requests.

mod link;
mod replies;
mod resp;
mod script;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::network::{Flow, Gateway, Switches, flowing, locked};

pub use script::Fault;
use script::Script;
pub(crate) use script::digests;

/// What a connection obeys and reports to.
#[derive(Debug, Clone)]
struct Controls {
    switches: watch::Receiver<Switches>,
    script: Arc<Mutex<Script>>,
}

impl Controls {
    /// How one direction flows, as soon as it does.
    async fn flow(&mut self, direction: fn(&Switches) -> Flow) -> Flow {
        flowing(&mut self.switches, direction).await
    }
}

/// A TCP proxy on a loopback port of its own; it ends with this value, and so do its connections.
///
/// It knows RESP, but not TLS, and nothing that breaks the rule of a reply for each request: `CLIENT
/// REPLY`, `MONITOR`, or RESP2 for subscribers. Only whole requests and replies pass.
#[derive(Debug)]
pub struct Proxy {
    gateway: Gateway,
    upstream: Arc<str>,
    switches: watch::Sender<Switches>,
    script: Arc<Mutex<Script>>,
}

impl Proxy {
    /// Starts a proxy to `upstream` (`127.0.0.1:6390`) that lets everything pass.
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

    /// `127.0.0.1:PORT`, where clients connect.
    pub fn addr(&self) -> String {
        self.gateway.addr()
    }

    /// Everything passes again, both ways and without delay, what was held as well; all rules are
    /// forgotten. What a request met when it came stays with it, though its reply be still to come.
    ///
    /// A connection that has lost bytes stays silent: no network mends a stream with a hole in it.
    /// [`cut`](Self::cut) it.
    pub fn pass(&self) {
        self.script().pass();
        self.switches.send_replace(Switches::default());
    }

    /// The next such request on any connection meets `fault`, also one that goes nowhere for an
    /// earlier fault. Several of them queue up in order.
    ///
    /// A command goes by its first word in lower case, one of our scripts by its file's name:
    /// `next("acquire", …)`.
    pub fn next(&self, command: &str, fault: Fault) {
        self.script().next(command, fault);
    }

    /// Every such request meets `fault`, once those that [`next`](Self::next) says have been met.
    pub fn always(&self, command: &str, fault: Fault) {
        self.script().always(command, fault);
    }

    /// How many such requests have come from clients, whatever became of them.
    pub fn seen(&self, command: &str) -> usize {
        self.script().counts(command).seen
    }

    /// How many such requests have been answered to clients, by the server or by
    /// [`Fault::Answer`].
    pub fn answered(&self, command: &str) -> usize {
        self.script().counts(command).answered
    }

    /// The names of the requests that have come, over all connections, in the order they came.
    pub fn log(&self) -> Vec<String> {
        self.script().log.clone()
    }

    /// Begins a new log. The counts go on.
    pub fn clear_log(&self) {
        self.script().log.clear();
    }

    /// Nothing passes, either way: connections are accepted and bytes taken, and all is held for
    /// [`pass`](Self::pass).
    pub fn freeze(&self) {
        self.switches.send_modify(|switches| {
            switches.requests = Flow::Hold;
            switches.replies = Flow::Hold;
        });
    }

    /// The server gets and executes everything; the client never learns of it.
    pub fn swallow_replies(&self) {
        self.switches.send_modify(|switches| switches.replies = Flow::Swallow);
    }

    /// The server hears nothing, while what it has to say still passes.
    pub fn swallow_requests(&self) {
        self.switches.send_modify(|switches| switches.requests = Flow::Swallow);
    }

    /// The next `count` messages of subscriptions never arrive; all else goes on, as if the server
    /// had lost them. They are seen and answered by the name `message`.
    pub fn swallow_messages(&self, count: usize) {
        self.script().messages_to_swallow = count;
    }

    /// Each way takes that much longer, in order, as a long cable does. From the next bytes on.
    pub fn delay(&self, delay: Duration) {
        self.switches.send_modify(|switches| switches.delay = delay);
    }

    /// Ends all connections; new ones are welcome. Returns once they are closed, on both sides.
    pub async fn cut(&self) {
        self.gateway.cut().await;
    }

    /// New connections are refused by the system, as if no process listened. Those that are open go on.
    pub async fn refuse(&self) {
        self.gateway.refuse().await;
    }

    /// Takes new connections again after [`refuse`](Self::refuse), on the same port.
    ///
    /// # Panics
    ///
    /// When somebody else has taken the port meanwhile.
    pub async fn accept(&self) {
        if let Some(listener) = self.gateway.bind_again().await {
            self.accept_from(listener);
        }
    }

    /// How many connections are open.
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
            link::run(client, server, controls)
        });
    }
}
