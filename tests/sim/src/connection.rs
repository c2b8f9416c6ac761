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
use crate::messages::{Answer, Message, Messages, Question};
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
    pub(crate) post: Post,
    life: Life,
    connections: Slots<(), Live>,
    /// When the last reply came.
    answered: Mutex<Option<Instant>>,
}

type Outcome = Result<Live, StoreError>;
type Ask = (Question, oneshot::Sender<Answer>);

/// A connection that is believed to work.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) asks: mpsc::UnboundedSender<Ask>,
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
        let (post, connections, answered) = Default::default();
        Self { address, network, messages, habit, response, post, life, connections, answered }
    }

    /// Returns the connection; makes one if there is none. A task of its own connects, so that a
    /// caller whose wait budget ends does not end it for the others.
    pub(crate) async fn get(self: &Arc<Self>) -> Outcome {
        let connect = |attempt| {
            let (life, keeps) = (self.life.clone(), run_connection(self.clone(), attempt));
            tokio::spawn(async move {
                tokio::select! {
                    biased;
                    () = life.is_ended() => {}
                    () = keeps => {}
                }
            });
        };
        self.connections.get((), connect).await
    }

    /// Returns whether a reply has come since then.
    pub(crate) fn answered_since(&self, since: Instant) -> bool {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.is_some_and(|answered| answered > since)
    }

    fn notes_answer(&self) {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Connects, and subscribes to the messages for all subscribers.
    async fn connect(&self) -> std::io::Result<Wire> {
        let socket = self.network.connect(&self.address).await?;
        let mut wire = Wire::new(socket, self.messages.clone());
        let subscribers =
            self.post.subscribers().iter().map(|subscriber| subscriber.id()).collect();
        let number = wire.ask(Question::Listen(subscribers))?;
        loop {
            match wire.hear().await? {
                Message::Answer(answered, _) if answered == number => return Ok(wire),
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
            return self.deliver_late(subscriber, rest);
        }
        self.post.deliver(subscriber, &words);
    }

    /// The mistake that the clock in a grant prevents.
    fn deliver_late(&self, subscriber: u64, words: &str) {
        let mut words = words.split(' ');
        let token = words.next().and_then(OwnerToken::parse);
        let number = words.next().and_then(|number| number.parse().ok());
        let subscriber = self.post.subscribers().into_iter().find(|one| one.id() == subscriber);
        if let (Some(token), Some(number), Some(subscriber)) = (token, number, subscriber) {
            let fencing = FencingToken::from_counter(number);
            subscriber.granted(token, Grant::new(fencing, Instant::now(), true));
        }
    }
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
    let (asks, asked) = mpsc::unbounded_channel();
    let suspected = Arc::<Notify>::default();
    let live = Live { asks, suspected: suspected.clone() };
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
    stay(&shared, wire, asked, &suspected, response).await;
    if let Some(shared) = shared.upgrade() {
        shared.connections.forget(id);
        shared.post.interrupted();
    }
}

/// Runs until the connection ends, the server does not reply, or no caller is left.
async fn stay(
    shared: &Weak<Shared>,
    mut wire: Wire,
    mut asked: mpsc::UnboundedReceiver<Ask>,
    suspected: &Notify,
    response: Duration,
) {
    // Sorted, so that waiting callers are woken in a fixed order when the connection ends.
    let mut open = BTreeMap::new();
    let mut looks = Instant::now() + HEARTBEAT;
    let mut ping = None;
    loop {
        tokio::select! {
            biased;
            heard = wire.hear() => {
                let (Ok(message), Some(shared)) = (heard, shared.upgrade()) else { return };
                match message {
                    Message::Answer(number, answer) => {
                        shared.notes_answer();
                        if ping == Some(number) {
                            ping = None;
                        }
                        if ping.is_none() {
                            looks = Instant::now() + HEARTBEAT;
                        }
                        if let Some(tells) = open.remove(&number) {
                            // The caller may be gone if its wait budget is spent.
                            let _nobody: Result<(), _> = oneshot::Sender::send(tells, answer);
                        }
                    }
                    news => shared.deliver(news),
                }
            }
            ask = asked.recv() => {
                let Some((question, tells)) = ask else { return };
                let Ok(number) = wire.ask(question) else { return };
                open.insert(number, tells);
            }
            () = suspected.notified(), if ping.is_none() => looks = Instant::now(),
            () = sleep_until(looks) => {
                if ping.is_some() {
                    return;
                }
                let Ok(number) = wire.ask(Question::Ping) else { return };
                (ping, looks) = (Some(number), Instant::now() + response);
            }
        }
    }
}
