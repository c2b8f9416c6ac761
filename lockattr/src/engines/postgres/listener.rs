//! The connection that listens, for all subscribers of a store on one runtime.
//!
//! Each listening session of a database costs every commit that notifies. So this one listens only
//! while a claim of this process waits, or while this process keeps a lock for its own callers.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::{Client, Error, Notification};

use super::connection_slot::{ConnectionSlot, LiveConnection, Role};
use super::failure::Failure;
use super::schema::Schema;
use super::transaction_waiters::TransactionWaiters;
use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::slots::current_runtime;
use crate::store::{Notifications, StoreError};

/// The channel of a subscriber ends in this and its number, which the functions find in the token.
pub(super) const INBOX: &str = "inbox_";

/// The channel on which a committed transaction names the lock that it held.
pub(super) const ENDED: &str = "ended";

/// How long it listens after the last need, because waiters come in groups.
const LINGER: Duration = Duration::from_secs(30);

/// A connection that only listens, because a busy one receives notifications late. Whether it still
/// exists is checked on other connections.
pub(super) struct Listener {
    pub(super) notifications: Notifications,
    pub(super) transaction_waiters: TransactionWaiters,
    /// Its channels: those of subscribers without their numbers, and the one of transactions.
    inbox: String,
    ended: String,
    /// Until when it listens.
    needed_until: Mutex<Instant>,
    /// Whether a task is about to listen.
    is_starting: AtomicBool,
}

impl Listener {
    pub(super) fn of(schema: &Schema) -> Self {
        let (inbox, ended) = (schema.channel(INBOX), schema.channel(ENDED));
        let (transaction_waiters, is_starting) = Default::default();
        let notifications = Notifications::new(Arc::default(), false);
        let needed_until = Mutex::new(Instant::now());
        Self { notifications, transaction_waiters, inbox, ended, needed_until, is_starting }
    }
}

/// The state of a listening connection.
pub(super) struct ListenerSession {
    /// The number of its place. The connection holds the advisory lock of this number while it
    /// exists.
    slot_lock: i64,
    /// The subscribers whose channels it listens to.
    channels: Mutex<HashSet<u64>>,
    /// Locked while a statement changes what it listens to.
    changes: tokio::sync::Mutex<()>,
}

impl Role for Listener {
    type Session = ListenerSession;

    async fn begin(&self, _client: &Client, slot_lock: i64) -> Result<ListenerSession, Error> {
        let (channels, changes) = Default::default();
        Ok(ListenerSession { slot_lock, channels, changes })
    }

    fn notified(&self, notification: &Notification) {
        self.dispatch(notification.channel(), notification.payload());
    }

    fn interrupted(&self) {
        self.notifications.interrupted();
    }

    /// Stops listening where it is no longer needed.
    async fn check(&self, client: &Client, session: &ListenerSession) -> Result<bool, Error> {
        if self.is_needed() {
            return Ok(false);
        }
        let _in_order = session.changes.lock().await;
        {
            let mut channels = session.channels();
            // A subscriber that still finds its channel here has extended the need before.
            if channels.is_empty() || self.is_needed() {
                return Ok(false);
            }
            channels.clear();
        }
        // If it fails, the connection is checked next.
        client.batch_execute("unlisten *").await.ok();
        Ok(false)
    }
}

impl Listener {
    pub(super) fn dispatch(&self, channel: &str, payload: &str) {
        if channel == self.ended {
            self.transaction_waiters.ask_again(&self.notifications.subscribers, &unhex(payload));
            return;
        }
        let subscriber = channel.strip_prefix(&*self.inbox);
        let subscriber = subscriber.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let Some(subscriber) = subscriber else { return };
        match payload.strip_prefix("wanted ").map(unhex) {
            Some(name) => self.notifications.deliver(subscriber, &["wanted ", &name].concat()),
            None => self.notifications.deliver(subscriber, payload),
        }
    }

    fn listen_until(&self, until: Instant) {
        let mut needed_until = self.needed_until.lock();
        *needed_until = until.max(*needed_until);
    }

    fn is_needed(&self) -> bool {
        let waits = || self.notifications.subscribers.all().iter().any(|it| it.waiting() > 0);
        *self.needed_until.lock() > Instant::now() || waits()
    }
}

impl ConnectionSlot<Listener> {
    /// Ensures that messages for this subscriber are received. Returns the number of the place.
    pub(super) async fn subscribe(self: &Arc<Self>, subscriber: u64) -> Result<i64, StoreError> {
        let live = self.get().await?;
        self.role.listen_until(Instant::now() + LINGER);
        let session = &live.session;
        if session.channels().contains(&subscriber) {
            return Ok(session.slot_lock);
        }
        let in_order = session.changes.lock().await;
        if !session.channels().contains(&subscriber) {
            let request = self.finish(&live, self.listen_on(&live, subscriber)).await;
            // No request of the claim was sent yet.
            request.map_err(|Failure { error, .. }| error.not_sent())?;
            session.channels().insert(subscriber);
            drop(in_order);
            // Notifications of earlier waiters were not received.
            if let Some(subscriber) = self.role.notifications.subscribers.get(subscriber) {
                subscriber.any_may_be_contended();
            }
        }
        Ok(session.slot_lock)
    }

    async fn listen_on(
        &self,
        live: &LiveConnection<Listener>,
        subscriber: u64,
    ) -> Result<(), Error> {
        let Listener { inbox, ended, .. } = &*self.role;
        let channels = format!("listen {ended}; listen {inbox}{subscriber:016x}");
        live.client.batch_execute(&channels).await
    }

    /// Listens for waiters until then. If it has to begin first, a task does so.
    pub(super) fn watch_for_waiters(self: &Arc<Self>, subscriber: u64, until: Instant) {
        self.role.listen_until(until);
        let Ok(runtime) = current_runtime() else { return };
        let listens =
            |live: &LiveConnection<Listener>| live.session.channels().contains(&subscriber);
        if self.live_on(runtime.id()).is_some_and(|live| listens(&live))
            || self.role.is_starting.swap(true, Ordering::AcqRel)
        {
            return;
        }
        let starting = Starting(self.clone());
        runtime.spawn(async move {
            // Without a connection, the next hand-off tries again.
            starting.0.subscribe(subscriber).await.ok();
        });
    }
}

/// A task that is about to listen, until it has ended for whatever reason.
struct Starting(Arc<ConnectionSlot<Listener>>);

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.role.is_starting.store(false, Ordering::Release);
    }
}

impl ListenerSession {
    fn channels(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.channels.lock()
    }
}

/// Decodes the name of a lock, which may have bytes that a message cannot.
fn unhex(digits: &str) -> String {
    let pairs = digits.as_bytes().chunks_exact(2);
    let bytes =
        pairs.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
}
