//! A network that fails on command: a TCP proxy between a client and its server, with switches for
//! all that passes and rules for single requests.

mod link;
mod replies;
mod resp;
mod script;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::port::free_port;

pub use script::Fault;
use script::Script;

/// What happens to the bytes of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Flow {
    #[default]
    Pass,
    /// Taken from the sender and kept for later, in order.
    Hold,
    /// Taken from the sender and dropped; only the end of the stream still passes.
    Swallow,
}

/// The switches, as every connection sees them.
#[derive(Debug, Clone, Copy, Default)]
struct Switches {
    requests: Flow,
    replies: Flow,
    delay: Duration,
}

/// What a connection obeys and reports to.
#[derive(Debug, Clone)]
struct Controls {
    switches: watch::Receiver<Switches>,
    script: Arc<Mutex<Script>>,
}

impl Controls {
    /// How one direction flows, as soon as it does.
    async fn flow(&mut self, direction: fn(&Switches) -> Flow) -> Flow {
        let now = self.switches.wait_for(|now| direction(now) != Flow::Hold).await;
        // The proxy is gone when its switches are; so will the connection be.
        now.map_or(Flow::Pass, |now| direction(&now))
    }
}

/// A TCP proxy on a loopback port of its own; it ends with this value, and so do its connections.
///
/// It knows RESP, but not TLS, and nothing that breaks the rule of a reply for each request: `CLIENT
/// REPLY`, `MONITOR`, or RESP2 for subscribers. Only whole requests and replies pass.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    upstream: Arc<str>,
    switches: watch::Sender<Switches>,
    script: Arc<Mutex<Script>>,
    links: Arc<Mutex<JoinSet<()>>>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

impl Proxy {
    /// Starts a proxy to `upstream` (`127.0.0.1:6390`) that lets everything pass.
    pub async fn start(upstream: impl Into<Arc<str>>) -> Self {
        let listener = listen().await;
        let proxy = Self {
            addr: listener.local_addr().expect("a bound listener"),
            upstream: upstream.into(),
            switches: watch::Sender::new(Switches::default()),
            script: Arc::new(Mutex::new(Script::new())),
            links: Arc::default(),
            accepting: Mutex::new(None),
        };
        proxy.accept_from(listener);
        proxy
    }

    /// `127.0.0.1:PORT`, where clients connect.
    pub fn addr(&self) -> String {
        self.addr.to_string()
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

    /// The server gets and executes everything; the client never hears of it.
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
        let mut links = std::mem::take(&mut *locked(&self.links));
        links.shutdown().await;
    }

    /// New connections are refused by the system, as if nobody listened. Those that are open go on.
    pub async fn refuse(&self) {
        let accepting = locked(&self.accepting).take();
        if let Some(accepting) = accepting {
            accepting.abort();
            // The listener is closed when its task is gone.
            accepting.await.ok();
        }
    }

    /// Takes new connections again after [`refuse`](Self::refuse), on the same port.
    ///
    /// # Panics
    ///
    /// When somebody else has taken the port meanwhile.
    pub async fn accept(&self) {
        if locked(&self.accepting).is_none() {
            let listener = TcpListener::bind(self.addr).await;
            self.accept_from(listener.unwrap_or_else(|error| panic!("{}: {error}", self.addr)));
        }
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        let mut links = locked(&self.links);
        while links.try_join_next().is_some() {}
        links.len()
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        locked(&self.script)
    }

    fn accept_from(&self, listener: TcpListener) {
        let links = Arc::clone(&self.links);
        let upstream = Arc::clone(&self.upstream);
        let switches = self.switches.subscribe();
        let script = Arc::clone(&self.script);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let controls = Controls { switches: switches.clone(), script: Arc::clone(&script) };
                locked(&links).spawn(link::run(client, Arc::clone(&upstream), controls));
            }
        });
        *locked(&self.accepting) = Some(accepting);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(accepting) = locked(&self.accepting).take() {
            accepting.abort();
        }
        locked(&self.links).abort_all();
    }
}

/// Not a port of the system's choice, for the reason given in `port.rs`: it must stay ours while we
/// refuse.
async fn listen() -> TcpListener {
    loop {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, free_port())).await {
            Ok(listener) => return listener,
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => panic!("a loopback port: {error}"),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
