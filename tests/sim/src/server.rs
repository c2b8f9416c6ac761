//! A server: the rules of the Redis scripts behind a simulated socket.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lockattr::FencingToken;
use lockattr::store::{AnyStore, Notification, OwnerToken, Subscriber};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use turmoil::net::{TcpListener, TcpStream};

use crate::machine::{Calendar, elapsed};
use crate::messages::{Message, Messages, Reply, Request};
use crate::network::ALIVE;

/// The port of every server.
pub(crate) const PORT: u16 = 6379;

/// How long a connection may be silent before it counts as dead: if the network was cut first,
/// nothing reports the end of a connection. Until then its subscribers are notified in vain. A
/// paused process is not detected, because its system keeps the connection alive.
const KEEP_ALIVE: Duration = Duration::from_secs(3);

/// The bits of a fencing token below the counter. The server's notifications carry only the
/// counter.
const COUNTER: u32 = 10;

/// One server. Its data outlives its process.
#[derive(Debug)]
pub(crate) struct Server {
    /// Its data.
    pub(crate) store: AnyStore,
    /// How much too fast its clock runs, in thousandths.
    pub(crate) fast: i32,
    /// How long it is busy with each request; `busy`: until when with those that have arrived.
    pub(crate) service_time: Duration,
    pub(crate) busy: Mutex<Option<Instant>>,
    /// Its calendar, which its fencing tokens follow and its leases do not.
    pub(crate) calendar: Calendar,
    /// Whether its process runs.
    pub(crate) power: watch::Sender<bool>,
    /// The messages of its world.
    pub(crate) messages: Messages,
}

impl Server {
    /// A running server over `store`.
    pub(crate) fn new(
        store: AnyStore,
        fast: i32,
        service_time: Duration,
        messages: Messages,
    ) -> Arc<Self> {
        let (power, busy) = (watch::Sender::new(true), Mutex::default());
        let calendar = Calendar::default();
        Arc::new(Self { store, fast, service_time, busy, calendar, power, messages })
    }

    /// What its host runs.
    ///
    /// # Errors
    ///
    /// None of those that a simulated network has.
    pub(crate) async fn run(self: Arc<Self>) -> turmoil::Result {
        let mut power = self.power.subscribe();
        self.calendar.use_here();
        loop {
            power.wait_for(|on| *on).await?;
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    biased;
                    off = power.wait_for(|on| !*on) => {
                        off?;
                        break;
                    }
                    accepted = listener.accept() => {
                        let (stream, _) = accepted?;
                        connections.spawn(self.clone().serve(stream));
                    }
                }
            }
            drop(listener);
            connections.shutdown().await;
        }
    }

    /// Serves one connection until it ends, and then drops its subscribers.
    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        let (outgoing, mut to_send) = mpsc::unbounded_channel();
        let mut subscribers = Vec::new();
        let mut bytes = [0; 8];
        let mut last_received = Instant::now();
        loop {
            tokio::select! {
                biased;
                Some(message) = to_send.recv() => {
                    if stream.write_all(&self.messages.send(message)).await.is_err() {
                        return;
                    }
                }
                read = stream.read(&mut bytes) => {
                    let Ok(8) = read else { return };
                    last_received = Instant::now();
                    if bytes == ALIVE {
                        continue;
                    }
                    let Message::Request(request_id, request) = self.messages.collect(bytes) else {
                        panic!("a process sends a request");
                    };
                    if let Request::Listen(ids) = &request {
                        for &id in ids {
                            let subscriber = Arc::new(self.subscriber(id, &outgoing));
                            self.store.subscribe(&subscriber);
                            subscribers.push(subscriber);
                        }
                    }
                    self.wait_for_turn().await;
                    let reply = self.execute(request).await;
                    // The receiver is alive: it is in this function.
                    outgoing.send(Message::Reply(request_id, reply)).ok();
                }
                () = sleep_until(last_received + KEEP_ALIVE) => return,
            }
        }
    }

    /// Waits until the server is done with earlier requests.
    async fn wait_for_turn(&self) {
        if self.service_time.is_zero() {
            return;
        }
        let begins = {
            let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let begins = busy.map_or(now, |until| until.max(now));
            *busy = Some(begins + self.service_time);
            begins
        };
        sleep_until(begins).await;
    }

    /// The server's part of a process's subscriber.
    fn subscriber(
        self: &Arc<Self>,
        id: u64,
        outgoing: &mpsc::UnboundedSender<Message>,
    ) -> Subscriber {
        let (contended, notification, server) = (outgoing.clone(), outgoing.clone(), self.clone());
        let on_contended = move |name: Option<&str>| {
            let name = name.expect("a server names the lock");
            contended.send(Message::Notification(id, format!("wanted {name}"))).ok();
        };
        let on_notification = move |token, about| {
            notification.send(Message::Notification(id, server.words(token, &about))).ok();
        };
        Subscriber::with_network(id, on_contended, on_notification)
    }

    /// A notification, in the format of the scripts.
    fn words(&self, token: OwnerToken, notification: &Notification) -> String {
        match notification {
            Notification::Granted(grant) => {
                let (counter, contended) =
                    (grant.fencing.get() >> COUNTER, u8::from(grant.contended));
                debug_assert_eq!(FencingToken::from_counter(counter), grant.fencing);
                let less = self.shown(grant.since.elapsed()).as_micros().div_ceil(1000);
                format!("granted {token} {counter} {} {contended} {less}", self.clock())
            }
            Notification::AskAgain(at) => {
                let later = at.saturating_duration_since(Instant::now());
                format!("later {token} {}", later.as_micros().div_ceil(1000))
            }
        }
    }

    async fn execute(&self, request: Request) -> Reply {
        match request {
            Request::Listen(_) | Request::Ping => Reply::Done,
            Request::Acquire(mut request) => {
                request.ttl = self.counted(request.ttl);
                let reply = self.store.acquire(&request).await;
                Reply::Acquire(reply.expect("memory fails never"), self.clock())
            }
            Request::Renew(mut renewals) => {
                renewals.iter_mut().for_each(|one| one.ttl = self.counted(one.ttl));
                let replies = self.store.renew(&renewals).await;
                Reply::Renew(replies.into_iter().map(|one| one.expect("as above")).collect())
            }
            Request::Release(releases) => {
                let replies = self.store.release(&releases).await;
                Reply::Release(replies.into_iter().map(|one| one.expect("as above")).collect())
            }
            Request::Holder(key) => Reply::Holder(self.store.holder(&key).await.expect("as above")),
            Request::ForceRelease(key, holder) => {
                let released = self.store.force_release(&key, &holder).await;
                Reply::ForceReleased(released.expect("as above"))
            }
            Request::NextToken(key) => {
                Reply::NextToken(self.store.next_token(&key).await.expect("as above"))
            }
        }
    }

    /// The real length of a duration by the server's clock.
    fn counted(&self, time: Duration) -> Duration {
        time.mul_f64(1.0 - f64::from(self.fast) / 1000.0)
    }

    /// The server's clock, in microseconds. It need not start with the simulation.
    fn clock(&self) -> u64 {
        1_000_000_000 + self.shown(elapsed()).as_micros() as u64
    }

    /// The length of a real duration by the server's clock.
    fn shown(&self, time: Duration) -> Duration {
        time.mul_f64(1.0 + f64::from(self.fast) / 1000.0)
    }
}
