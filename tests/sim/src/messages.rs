//! What travels between a process and a server. The network carries its number, eight bytes; what
//! the number stands for lies here. A message that the network loses is one that no process collects.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lockattr::store::{
    AcquireOutcome, AcquireRequest, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest,
};
use lockattr::{FencingToken, Holder};

/// One message.
#[derive(Debug)]
pub(crate) enum Message {
    /// From a process; the number comes back with the answer.
    Question(u64, Question),
    /// From a server.
    Answer(u64, Answer),
    /// From a server to a subscriber, in the words of Redis.
    Notification(u64, String),
}

/// What a process asks.
#[derive(Debug)]
pub(crate) enum Question {
    /// To be told what concerns these subscribers, from now on and on this connection.
    Listen(Vec<u64>),
    /// `Store::acquire`.
    Acquire(AcquireRequest),
    /// `Store::renew`.
    Renew(Vec<RenewRequest>),
    /// `Store::release`.
    Release(Vec<ReleaseRequest>),
    /// `Store::holder`.
    Holder(LockKey),
    /// `Store::next_token`.
    Number(LockKey),
    /// Whether anybody is there.
    Ping,
}

/// What a server answers.
#[derive(Debug)]
pub(crate) enum Answer {
    /// To `AcquireOutcome`, and what the server's clock shows, in microseconds.
    Acquire(AcquireOutcome, u64),
    /// To `RenewOutcome`, one by one.
    Renew(Vec<RenewOutcome>),
    /// To `ReleaseOutcome`, one by one.
    Release(Vec<ReleaseOutcome>),
    /// To `Holder`.
    Holder(Option<Holder>),
    /// To `Number`.
    Number(Option<FencingToken>),
    /// To all else.
    Done,
}

/// All that is on its way, in one simulated world.
#[derive(Clone, Debug, Default)]
pub(crate) struct Messages(Arc<Mutex<Depot>>);

#[derive(Debug, Default)]
struct Depot {
    last: u64,
    waiting: HashMap<u64, Message>,
}

impl Messages {
    /// Puts a message on its way: what the network has to carry.
    pub(crate) fn send(&self, message: Message) -> [u8; 8] {
        let mut depot = self.depot();
        depot.last += 1;
        let number = depot.last;
        depot.waiting.insert(number, message);
        number.to_be_bytes()
    }

    /// What the network has brought.
    ///
    /// # Panics
    ///
    /// If it brought the same twice, or half of it: no such network is simulated.
    pub(crate) fn collect(&self, bytes: [u8; 8]) -> Message {
        let number = u64::from_be_bytes(bytes);
        self.depot().waiting.remove(&number).expect("a message comes once")
    }

    fn depot(&self) -> MutexGuard<'_, Depot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
