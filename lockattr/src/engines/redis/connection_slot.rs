//! A connection that is always available: made when first needed, replaced when it fails or stops
//! replying.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError, ServerErrorKind};
use tokio::runtime;

use super::cluster_node;
use super::combiner::Combiner;
use super::config::Config;
use super::counters::Raised;
use super::endpoint::Connected;
use super::heartbeat::{Demotion, run_connection};
use super::listener::Listener;
use super::login::{self, Login, Verified};
use super::native::Native;
use super::notifications::{RedisNotifications, channel};
use super::restart::GrantsFrom;
use super::scripts::Scripts;
use crate::platform::sync::Mutex;
use crate::store::StoreError;
use crate::store::heartbeat::Heartbeat;
use crate::store::slots::{Slots, current_runtime, unless_panics};

/// One slot of the connection pool.
pub(super) struct ConnectionSlot {
    pub(super) config: Config,
    pub(super) scripts: Arc<Scripts>,
    /// Receives messages that are published on this connection. One connection of a store carries
    /// them all.
    pub(super) notifications: Option<Arc<RedisNotifications>>,
    connections: Slots<runtime::Id, Arc<LiveConnection>>,
    pub(super) verified: Verified,
    /// Whether the server has replied on any of its connections.
    has_replied: AtomicBool,
}

/// The outcome of an attempt to connect.
pub(super) type Outcome = Result<Arc<LiveConnection>, StoreError>;

/// A connection that is assumed to work.
pub(super) struct LiveConnection {
    connected: Connected,
    connection_slot: Weak<ConnectionSlot>,
    /// Whether a reply was none to its request. No later one counts.
    is_distrusted: AtomicBool,
    /// What it has logged in with.
    pub(super) login: Login,
    pub(super) heartbeat: Arc<Heartbeat>,
    pub(super) demotion: Arc<Demotion>,
    pub(super) id: u64,
    /// The address of the server, for errors.
    pub(super) address: Arc<str>,
    /// The subscribers whose messages it receives.
    subscribed: Mutex<HashSet<u64>>,
    /// Receives the messages, if the server cannot push them.
    pub(super) listener: Option<Listener>,
    /// When the server grants again, if a restart may have lost leases.
    pub(super) grants: Option<GrantsFrom>,
    /// The server's own command to release a lock, as found over this connection.
    pub(super) native: Option<Native>,
    /// The counters that a script has raised over this connection.
    pub(super) raised: Raised,
    /// Sends the commands of many callers together.
    pub(super) combiner: Arc<Combiner>,
}

impl ConnectionSlot {
    pub(super) fn new(
        config: Config,
        scripts: Arc<Scripts>,
        notifications: Option<Arc<RedisNotifications>>,
    ) -> Arc<Self> {
        let (connections, verified, has_replied) = Default::default();
        Arc::new(Self { config, scripts, notifications, connections, verified, has_replied })
    }

    /// Subscribes this connection to the subscriber's channel.
    pub(super) async fn subscribe(self: &Arc<Self>, subscriber: u64) -> Result<(), StoreError> {
        let live = self.get().await?;
        self.subscribe_on(live, subscriber).await
    }

    /// Subscribes the connection with this id to the channels of all subscribers. Sends nothing if
    /// none is missing. Ignores failures, because each heartbeat repeats it.
    pub(super) async fn subscribe_all(&self, id: u64) {
        for subscriber in self.notifications.iter().flat_map(|notifications| notifications.ids()) {
            let Some(live) = self.live_with(id) else { return };
            if self.subscribe_on(live, subscriber).await.is_err() {
                return;
            }
        }
    }

    async fn subscribe_on(
        &self,
        live: Arc<LiveConnection>,
        subscriber: u64,
    ) -> Result<(), StoreError> {
        if live.is_subscribed(subscriber) {
            return Ok(());
        }
        let outcome = match &live.listener {
            Some(listener) => listener.subscribe(subscriber).await,
            None => live.connection().subscribe(channel(subscriber)).await,
        };
        self.note(&live, outcome)?;
        live.subscribed(subscriber);
        Ok(())
    }

    /// Returns the connection, and makes it if there is none.
    pub(super) async fn get(self: &Arc<Self>) -> Outcome {
        let runtime = current_runtime()?;
        if let Some((_, live)) = self.connections.live(runtime.id()) {
            return Ok(live);
        }
        let connect = |attempt| {
            runtime.spawn(run_connection(self.clone(), runtime.id(), attempt));
        };
        self.connections.get(runtime.id(), connect).await
    }

    /// Records the outcome of a command on `live`.
    pub(super) fn note<T>(
        &self,
        live: &LiveConnection,
        outcome: Result<T, RedisError>,
    ) -> Result<T, StoreError> {
        let error = match outcome {
            Ok(_) if live.is_distrusted.load(Ordering::Relaxed) => return Err(live.distrusted()),
            Ok(_) if live.demotion.is_known() => {
                let sentence = format!("{} is not the master any more", live.address);
                return Err(StoreError::new(sentence));
            }
            Ok(value) => {
                live.heartbeat.note_reply();
                self.has_replied.store(true, Ordering::Relaxed);
                return Ok(value);
            }
            Err(error) => error,
        };
        if error.kind() == ErrorKind::UnexpectedReturnType {
            return Err(live.distrusted().with_source(error));
        }
        if error.is_timeout() {
            live.heartbeat.suspect();
            let limit = self.config.timing.response_timeout;
            let sentence = format!("no answer from {} within {limit:?}", live.address);
            return Err(StoreError::new(sentence).with_source(error));
        }
        // After a failover the server at the old address may be a replica, and remain one.
        let demoted = [ServerErrorKind::ReadOnly, ServerErrorKind::MasterDown];
        let demoted = demoted.map(ErrorKind::Server).contains(&error.kind());
        // The server has ended the login: the next connection has a new one.
        if error.is_unrecoverable_error() || demoted || login::is_refused(&error) {
            self.forget(live.id);
        }
        let is_misplaced = !self.scripts.for_a_cluster && cluster_node::is_shown_by(&error);
        let error = error_from(&live.address, error);
        Err(match is_misplaced {
            true => {
                let advice = cluster_node::advice(&self.config.server);
                StoreError::new(format!("{error}; {advice}")).with_source(error)
            }
            false => error,
        })
    }

    /// Makes the connection with this id, and puts it to use.
    pub(super) async fn connect(self: &Arc<Self>, runtime: runtime::Id, id: u64) -> Outcome {
        let outcome = match unless_panics(self.establish(runtime, id)).await {
            // Later failures have other causes, and a connection is then in a hurry.
            Err(error) if !self.has_replied.load(Ordering::Relaxed) => {
                Err(self.explained(error).await)
            }
            outcome => outcome,
        };
        if let Ok(live) = &outcome {
            let sends = live.combiner.clone().run(Arc::downgrade(self), Arc::downgrade(live));
            tokio::spawn(sends);
        }
        self.connections.settle(runtime, id, &outcome);
        outcome
    }

    /// Requires a script to raise the counters again, on each connection.
    pub(super) fn clear_raised(&self) {
        self.connections.all().iter().for_each(|live| live.raised.clear());
    }

    /// Returns the connection with this id, if it is still in use.
    pub(super) fn live_with(&self, id: u64) -> Option<Arc<LiveConnection>> {
        self.connections.live_with(id)
    }

    /// Stops using the connection with this id.
    pub(super) fn forget(&self, id: u64) {
        let forgotten = self.connections.forget(id);
        if let Some(notifications) = self.notifications.as_ref().filter(|_| forgotten.is_some()) {
            notifications.interrupted();
        }
    }
}

/// Adds the server's address to an error of the server, or of the network on the way to it.
pub(super) fn error_from(address: &str, error: RedisError) -> StoreError {
    StoreError::new(format!("{address}: {error}")).with_source(error)
}

impl LiveConnection {
    /// Creates a connection with empty state.
    pub(super) fn new(
        connected: Connected,
        connection_slot: Weak<ConnectionSlot>,
        id: u64,
        address: Arc<str>,
    ) -> Self {
        Self {
            connected,
            connection_slot,
            is_distrusted: AtomicBool::default(),
            login: Login::default(),
            heartbeat: Arc::default(),
            demotion: Arc::default(),
            id,
            address,
            subscribed: Mutex::default(),
            listener: None,
            grants: None,
            native: None,
            raised: Raised::none(),
            combiner: Arc::default(),
        }
    }

    /// Returns a handle that sends over this connection.
    pub(super) fn connection(&self) -> MultiplexedConnection {
        self.connected.connection.clone()
    }

    /// Ends the connection, and returns the error about a reply that is none to its request: what comes
    /// next may be the reply to another one, and look like a grant.
    pub(super) fn distrusted(&self) -> StoreError {
        self.is_distrusted.store(true, Ordering::Relaxed);
        self.connected.end();
        if let Some(connection_slot) = self.connection_slot.upgrade() {
            connection_slot.forget(self.id);
        }
        StoreError::new(format!("{}: the server sent an unexpected reply", self.address))
    }

    fn is_subscribed(&self, subscriber: u64) -> bool {
        self.subscribed.lock().contains(&subscriber)
    }

    /// Records that it receives the messages of this subscriber.
    pub(super) fn subscribed(&self, subscriber: u64) {
        self.subscribed.lock().insert(subscriber);
    }
}

impl Drop for LiveConnection {
    fn drop(&mut self) {
        self.combiner.close();
    }
}
