//! The connection that listens, for all subscribers of a store on one runtime.

use std::collections::HashSet;
use std::sync::Arc;

use tokio_postgres::{Client, Error, Notification};

use super::connection_slot::{ConnectionSlot, LiveConnection, Role};
use super::failure::Failure;
use super::transaction::ENDED;
use super::transaction_waiters::TransactionWaiters;
use crate::platform::sync::Mutex;
use crate::store::{Notifications, StoreError};

/// The channel of a subscriber is this and its number; the functions find the number in the token.
const CHANNEL: &str = "lockattr_inbox_";

/// A connection that only listens, because a busy one receives notifications late. Whether it still
/// exists is checked on other connections.
pub(super) struct Listener(pub(super) Notifications, pub(super) TransactionWaiters);

impl Default for Listener {
    fn default() -> Self {
        Self(Notifications::new(Arc::default(), false), TransactionWaiters::default())
    }
}

/// The state of a listening connection.
pub(super) struct ListenerSession {
    /// The number of its place. The connection holds the advisory lock of this number while it
    /// exists.
    slot_lock: i64,
    /// The subscribers whose channels it listens to.
    listens: Mutex<HashSet<u64>>,
}

impl Role for Listener {
    type Session = Arc<ListenerSession>;

    async fn begin(&self, client: &Client, slot_lock: i64) -> Result<Arc<ListenerSession>, Error> {
        let subscribers: HashSet<_> =
            self.0.subscribers.all().iter().map(|subscriber| subscriber.id()).collect();
        let channels: String = subscribers.iter().map(|&subscriber| listen(subscriber)).collect();
        let channels = format!("listen {ENDED}; {channels}");
        client.batch_execute(&channels).await?;
        Ok(Arc::new(ListenerSession { slot_lock, listens: Mutex::new(subscribers) }))
    }

    fn notified(&self, notification: &Notification) {
        self.dispatch(notification.channel(), notification.payload());
    }

    fn interrupted(&self) {
        self.0.interrupted();
    }
}

impl Listener {
    pub(super) fn dispatch(&self, channel: &str, payload: &str) {
        if channel == ENDED {
            self.1.ask_again(&self.0.subscribers, &unhex(payload));
            return;
        }
        let subscriber = channel.strip_prefix(CHANNEL);
        let subscriber = subscriber.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let Some(subscriber) = subscriber else { return };
        match payload.strip_prefix("wanted ").map(unhex) {
            Some(name) => self.0.deliver(subscriber, &["wanted ", &name].concat()),
            None => self.0.deliver(subscriber, payload),
        }
    }
}

impl ConnectionSlot<Listener> {
    /// Ensures that messages for this subscriber are received. Returns the number of the place.
    pub(super) async fn subscribe(self: &Arc<Self>, subscriber: u64) -> Result<i64, StoreError> {
        let live = self.get().await?;
        if !live.session.listens().contains(&subscriber) {
            let request = self.finish(&live, listen_on(&live, subscriber)).await;
            // No request of the claim was sent yet.
            request.map_err(|Failure { error, .. }| error.not_sent())?;
            live.session.listens().insert(subscriber);
        }
        Ok(live.session.slot_lock)
    }
}

async fn listen_on(live: &LiveConnection<Listener>, subscriber: u64) -> Result<(), Error> {
    live.client.batch_execute(&listen(subscriber)).await
}

impl ListenerSession {
    fn listens(&self) -> crate::platform::sync::MutexGuard<'_, HashSet<u64>> {
        self.listens.lock()
    }
}

fn listen(subscriber: u64) -> String {
    format!("listen {CHANNEL}{subscriber:016x}; ")
}

/// Decodes the name of a lock, which may have bytes that a message cannot.
fn unhex(digits: &str) -> String {
    let pairs = digits.as_bytes().chunks_exact(2);
    let bytes =
        pairs.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
}
