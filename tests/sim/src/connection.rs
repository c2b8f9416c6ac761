//! A connection that is made when first needed, and replaced when it fails or falls silent, in the
//! slots that the engines use.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use lockattr::__sim::{Attempt, Post, Slots};
use lockattr::FencingToken;
use lockattr::store::{Grant, OwnerToken, StoreError};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use crate::client::Habit;
use crate::life::Life;
use crate::machine::date;
use crate::messages::{Message, Messages, Reply, Request};
use crate::network::Network;
use crate::wire::Wire;

/// After how long without a reply the server is sent a ping.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// What all callers of this server share.
#[derive(Debug)]
pub(crate) struct Shared {
    address: String,
    network: Network,
    messages: Messages,
    habit: Habit,
    /// How long a reply or a connection attempt may take.
    pub(crate) response: Duration,
    pub(crate) notifications: Post,
    life: Life,
    connections: Slots<(), Live>,
    /// By how many microseconds the server's clock was behind this process's calendar at the first
    /// reply.
    behind: Mutex<Option<i128>>,
}

type Outcome = Result<Live, StoreError>;
type Call = (Request, oneshot::Sender<Reply>);

/// A connection that is believed to work.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) requests: mpsc::UnboundedSender<Call>,
    pub(crate) suspected: Arc<Notify>,
}

impl Shared {
    pub(crate) fn new(
        address: &str,
        network: Network,
        messages: Messages,
        life: Life,
        habit: Habit,
        response: Duration,
    ) -> Self {
        let address = address.to_owned();
        let (notifications, connections, behind) = Default::default();
        Self {
            address,
            network,
            messages,
            habit,
            response,
            notifications,
            life,
            connections,
            behind,
        }
    }

    /// Returns the connection; makes one if there is none. A task of its own connects, so that a
    /// caller whose wait budget ends does not end it for the others.
    pub(crate) async fn get(self: &Arc<Self>) -> Outcome {
        let connect = |attempt| {
            let (life, connection) = (self.life.clone(), run_connection(self.clone(), attempt));
            tokio::spawn(async move {
                tokio::select! {
                    biased;
                    () = life.is_ended() => {}
                    () = connection => {}
                }
            });
        };
        self.connections.get((), connect).await
    }

    /// Connects, and subscribes to the messages for all subscribers.
    async fn connect(&self) -> std::io::Result<Wire> {
        let socket = self.network.connect(&self.address).await?;
        let mut wire = Wire::new(socket, self.messages.clone());
        let subscribers =
            self.notifications.subscribers().iter().map(|subscriber| subscriber.id()).collect();
        let request_id = wire.send(Request::Listen(subscribers))?;
        loop {
            match wire.receive().await? {
                Message::Reply(id, _) if id == request_id => return Ok(wire),
                message => self.deliver(message),
            }
        }
    }

    /// Delivers a message that the server sent without a request.
    fn deliver(&self, message: Message) {
        let Message::Notification(subscriber, words) = message else { return };
        if self.habit == Habit::DatesGrantsLate
            && let Some(rest) = words.strip_prefix("granted ")
        {
            return self.deliver_dated(subscriber, rest, |_| Some(Instant::now()));
        }
        if self.habit == Habit::DatesGrantsByCalendar
            && let Some(rest) = words.strip_prefix("granted ")
        {
            return self.deliver_dated(subscriber, rest, |clock| self.by_calendar(clock));
        }
        self.notifications.deliver(subscriber, &words);
    }

    /// Compares the server's clock with this process's calendar, once.
    pub(crate) fn compare_calendars(&self, clock: u64) {
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        behind.get_or_insert_with(|| date_in_micros() - i128::from(clock));
    }

    /// When the server's clock showed this, if no calendar has jumped since the first reply.
    fn by_calendar(&self, clock: u64) -> Option<Instant> {
        let behind = (*self.behind.lock().unwrap_or_else(PoisonError::into_inner))?;
        let age = date_in_micros() - (i128::from(clock) + behind);
        let micros = Duration::from_micros(u64::try_from(age.unsigned_abs()).ok()?);
        let now = Instant::now();
        if age < 0 { now.checked_add(micros) } else { now.checked_sub(micros) }
    }

    /// The mistakes that the clock in a grant prevents: `date` says when the server sent a grant.
    fn deliver_dated(
        &self,
        subscriber: u64,
        words: &str,
        date: impl FnOnce(u64) -> Option<Instant>,
    ) {
        let mut words = words.split(' ');
        let token = words.next().and_then(OwnerToken::parse);
        let counter = words.next().and_then(|counter| counter.parse().ok());
        let clock = words.next().and_then(|clock| clock.parse().ok());
        let subscriber =
            self.notifications.subscribers().into_iter().find(|one| one.id() == subscriber);
        let since = clock.and_then(date);
        if let (Some(token), Some(counter), Some(subscriber), Some(since)) =
            (token, counter, subscriber, since)
        {
            let fencing = FencingToken::from_counter(counter);
            subscriber.granted(token, Grant::new(fencing, since, true));
        }
    }
}

fn date_in_micros() -> i128 {
    date().as_micros().cast_signed()
}

/// Connects, reports the result, and keeps the connection as long as it gets replies.
async fn run_connection(shared: Arc<Shared>, attempt: Attempt<Live>) {
    let connected = timeout(shared.response, shared.connect()).await;
    let failed = |sentence: String| StoreError::new(sentence).not_sent();
    let wire = match connected {
        Ok(Ok(wire)) => wire,
        unreachable => {
            let error = failed(format!("no connection to {}: {unreachable:?}", shared.address));
            shared.connections.settle((), attempt.id, &Err(error.clone()));
            return attempt.finish(Err(error));
        }
    };
    let (requests, incoming) = mpsc::unbounded_channel();
    let suspected = Arc::<Notify>::default();
    let live = Live { requests, suspected: suspected.clone() };
    let id = attempt.id;
    shared.connections.settle((), id, &Ok(live.clone()));
    attempt.finish(Ok(live));
    let response = shared.response;
    // Only a weak reference while the connection is open: dropping the store closes it.
    let shared = {
        let weak = Arc::downgrade(&shared);
        drop(shared);
        weak
    };
    serve_connection(&shared, wire, incoming, &suspected, response).await;
    if let Some(shared) = shared.upgrade() {
        shared.connections.forget(id);
        shared.notifications.interrupted();
    }
}

/// Runs until the connection ends, the server does not reply, or no caller is left.
async fn serve_connection(
    shared: &Weak<Shared>,
    mut wire: Wire,
    mut incoming: mpsc::UnboundedReceiver<Call>,
    suspected: &Notify,
    response: Duration,
) {
    // Sorted, so that waiting callers are woken in a fixed order when the connection ends.
    let mut open = BTreeMap::new();
    let mut next_ping = Instant::now() + HEARTBEAT;
    let mut ping = None;
    loop {
        tokio::select! {
            biased;
            received = wire.receive() => {
                let (Ok(message), Some(shared)) = (received, shared.upgrade()) else { return };
                match message {
                    Message::Reply(request_id, reply) => {
                        if ping == Some(request_id) {
                            ping = None;
                        }
                        if ping.is_none() {
                            next_ping = Instant::now() + HEARTBEAT;
                        }
                        if let Some(sender) = open.remove(&request_id) {
                            // The caller may be gone if its wait budget is spent.
                            let _unread: Result<(), _> = oneshot::Sender::send(sender, reply);
                        }
                    }
                    notification => shared.deliver(notification),
                }
            }
            call = incoming.recv() => {
                let Some((request, sender)) = call else { return };
                let Ok(request_id) = wire.send(request) else { return };
                open.insert(request_id, sender);
            }
            () = suspected.notified(), if ping.is_none() => next_ping = Instant::now(),
            () = sleep_until(next_ping) => {
                if ping.is_some() {
                    return;
                }
                let Ok(request_id) = wire.send(Request::Ping) else { return };
                (ping, next_ping) = (Some(request_id), Instant::now() + response);
            }
        }
    }
}
