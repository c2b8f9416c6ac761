//! A connection that is always there: made when first needed, replaced when it fails or falls
//! silent, in the slot in which the engines keep theirs.

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

/// After how long without an answer the server is asked whether it is there.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// What all who ask this server have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    address: String,
    network: Network,
    messages: Messages,
    habit: Habit,
    /// How long an answer may take, and how long a connection.
    pub(crate) response: Duration,
    pub(crate) post: Post,
    life: Life,
    connections: Slots<(), Live>,
    /// When the last answer came.
    answered: Mutex<Option<Instant>>,
}

type Outcome = Result<Live, StoreError>;
type Ask = (Question, oneshot::Sender<Answer>);

/// A connection that is thought to work.
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

    /// The connection, made now if there is none: by a task of its own, so that a caller without
    /// wait budget does not end it for the others.
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

    /// Whether an answer has come since then.
    pub(crate) fn answered_since(&self, since: Instant) -> bool {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.is_some_and(|answered| answered > since)
    }

    fn notes_answer(&self) {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Connects and asks to be told what concerns the subscribers.
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

    /// What a server said without being asked.
    fn deliver(&self, message: Message) {
        let Message::Notification(subscriber, words) = message else { return };
        if self.habit == Habit::DatesGrantsLate
            && let Some(rest) = words.strip_prefix("granted ")
        {
            return self.deliver_late(subscriber, rest);
        }
        self.post.deliver(subscriber, &words);
    }

    /// The mistake that the clock in a grant is there to avoid.
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

/// Connects, tells how that went, and stays with the connection for as long as it answers.
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
    // Not while it waits: who drops the store closes the connection.
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

/// Until the connection ends, or no process answers, or no process asks any more.
async fn stay(
    shared: &Weak<Shared>,
    mut wire: Wire,
    mut asked: mpsc::UnboundedReceiver<Ask>,
    suspected: &Notify,
    response: Duration,
) {
    // In order: when they are given up, those who wait are woken in it.
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
                            // No process listens any more where the wait budget was spent.
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
