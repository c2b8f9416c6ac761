//! The messages between processes and servers.
//!
//! The network carries only the number of a message, in eight bytes; its content is stored here. No
//! process collects a message that the network loses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lockattr::store::{
    AcquireOutcome, AcquireRequest, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest,
};
use lockattr::{FencingToken, Holder, HolderId};

/// One message.
#[derive(Debug)]
pub(crate) enum Message {
    /// From a process; the reply carries the same number.
    Request(u64, Request),
    /// From a server.
    Reply(u64, Reply),
    /// From a server to a subscriber, in the format of the Redis scripts.
    Notification(u64, String),
}

/// A request of a process.
#[derive(Debug)]
pub(crate) enum Request {
    /// Subscribes this connection to the messages for these subscribers.
    Listen(Vec<u64>),
    /// `Store::acquire`.
    Acquire(AcquireRequest),
    /// `Store::renew`.
    Renew(Vec<RenewRequest>),
    /// `Store::release`.
    Release(Vec<ReleaseRequest>),
    /// `Store::holder`.
    Holder(LockKey),
    /// `Store::force_release`.
    ForceRelease(LockKey, HolderId),
    /// `Store::next_token`.
    NextToken(LockKey),
    /// Whether the server is there.
    Ping,
}

/// A reply of a server.
#[derive(Debug)]
pub(crate) enum Reply {
    /// To `Acquire`, with the server's clock in microseconds.
    Acquire(AcquireOutcome, u64),
    /// To `Renew`, one by one.
    Renew(Vec<RenewOutcome>),
    /// To `Release`, one by one.
    Release(Vec<ReleaseOutcome>),
    /// To `Holder`.
    Holder(Option<Holder>),
    /// To `ForceRelease`.
    ForceReleased(bool),
    /// To `NextToken`.
    NextToken(Option<FencingToken>),
    /// To all others.
    Done,
}

/// All messages on their way in one simulated world.
#[derive(Clone, Debug, Default)]
pub(crate) struct Messages(Arc<Mutex<Depot>>);

#[derive(Debug, Default)]
struct Depot {
    last: u64,
    waiting: HashMap<u64, Message>,
}

impl Messages {
    /// Sends a message. Returns the bytes that the network has to carry.
    pub(crate) fn send(&self, message: Message) -> [u8; 8] {
        let mut depot = self.depot();
        depot.last += 1;
        let id = depot.last;
        depot.waiting.insert(id, message);
        id.to_be_bytes()
    }

    /// Returns the message that the network has delivered.
    ///
    /// # Panics
    ///
    /// If it was delivered twice or in part: no such network is simulated.
    pub(crate) fn collect(&self, bytes: [u8; 8]) -> Message {
        let id = u64::from_be_bytes(bytes);
        self.depot().waiting.remove(&id).expect("a message arrives once")
    }

    fn depot(&self) -> MutexGuard<'_, Depot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
