//! A connection that is made when first needed, and replaced when it fails or does not answer.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, Weak};

use tokio::runtime::{self, Handle};
use tokio::task::AbortHandle;
use tokio_postgres::{Client, Notification};

use super::config::Config;
use super::connect::Messages;
use super::driver::{self, Driver};
use super::failure::{Failure, connected, failure_of, unless_silent};
use super::heartbeat::run_connection;
use super::pooler;
use super::session;
use crate::store::StoreError;
use crate::store::heartbeat::Heartbeat;
use crate::store::last_reply::LastReply;
use crate::store::slots::{Slots, current_runtime, unless_panics};

/// The purpose of a connection.
pub(super) trait Role: Send + Sync + 'static {
    /// The state of a connection that is ready.
    type Session: Send + Sync;

    /// Prepares a new connection, in the place with this number.
    fn begin(
        &self,
        client: &Client,
        slot_lock: i64,
    ) -> impl Future<Output = Result<Self::Session, tokio_postgres::Error>> + Send;

    /// Called when the connection is ready, and then with each heartbeat. Returns whether to call it
    /// again soon, because a sweep has more rows to read.
    fn check(
        &self,
        client: &Client,
        session: &Self::Session,
    ) -> impl Future<Output = Result<bool, tokio_postgres::Error>> + Send;

    /// Handles a notification of the server.
    fn notified(&self, _notification: &Notification) {}

    /// The connection is gone.
    fn interrupted(&self) {}
}

/// One place in the pool.
pub(super) struct ConnectionSlot<R: Role> {
    pub(super) config: Config,
    pub(super) role: Arc<R>,
    connections: Slots<runtime::Id, Arc<LiveConnection<R>>>,
    /// Numbers its places, one for each runtime, by numbers that no other process has.
    numbers: RandomState,
}

/// The outcome of an attempt to connect.
pub(super) type Outcome<R> = Result<Arc<LiveConnection<R>>, StoreError>;

/// A connection that is believed to work.
pub(super) struct LiveConnection<R: Role> {
    pub(super) client: Client,
    pub(super) session: R::Session,
    pub(super) signs: Arc<SignsOfLife>,
    /// The runtime that drives it.
    pub(super) runtime: Handle,
    /// The number of its place. Its session holds the advisory lock of this number while it exists.
    pub(super) slot_lock: i64,
    id: u64,
    /// The task that reads and writes for it.
    driver: AbortHandle,
}

/// What the server has sent over a connection.
pub(super) struct SignsOfLife {
    pub(super) heartbeat: Heartbeat,
    pub(super) last_reply: LastReply,
}

impl SignsOfLife {
    fn note(&self) {
        self.heartbeat.note_reply();
        self.last_reply.record();
    }
}

impl<R: Role> ConnectionSlot<R> {
    pub(super) fn new(config: Config, role: Arc<R>) -> Arc<Self> {
        let (connections, numbers) = Default::default();
        Arc::new(Self { config, role, connections, numbers })
    }

    /// Returns the connection, made now if there is none.
    pub(super) async fn get(self: &Arc<Self>) -> Outcome<R> {
        let runtime = current_runtime()?;
        match self.connections.live(runtime.id()) {
            Some((_, live)) if !live.client.is_closed() => return Ok(live),
            Some((closed, _)) => self.forget(closed),
            None => {}
        }
        let connect = |attempt| {
            runtime.spawn(run_connection(self.clone(), runtime.id(), attempt));
        };
        self.connections.get(runtime.id(), connect).await
    }

    /// Returns the answer to a request on `live`, or why there is none that counts.
    pub(super) async fn finish<T>(
        &self,
        live: &LiveConnection<R>,
        request: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        let outcome = unless_silent(&self.config, &live.signs.last_reply, request).await;
        match &outcome {
            Err(failure) if failure.ends_connection => self.forget(live.id),
            Ok(_) | Err(_) => live.signs.note(),
        }
        outcome
    }

    /// Connects, in the place that `id` was given.
    pub(super) async fn connect(self: &Arc<Self>, runtime: runtime::Id, id: u64) -> Outcome<R> {
        let established = async {
            // Has its own limit, and runs only now and then.
            pooler::refuse(&self.config).await?;
            self.establish(runtime, id).await
        };
        let outcome = unless_panics(established).await.map_err(StoreError::not_sent);
        let in_slot = self.connections.settle(runtime, id, &outcome);
        // It may have ended before it was in its slot, which may be another attempt's by now.
        if let Ok(live) = &outcome
            && (!in_slot || live.client.is_closed())
        {
            live.driver.abort();
            self.forget(id);
            let address = &self.config.address;
            let sentence = format!("the connection to {address} ended while it was being set up");
            return Err(StoreError::new(sentence).not_sent());
        }
        outcome
    }

    async fn establish(self: &Arc<Self>, runtime: runtime::Id, id: u64) -> Outcome<R> {
        let failed = |error| failure_of(&self.config.address, error).error;
        let (heartbeat, last_reply) = (Heartbeat::default(), LastReply::new());
        let signs = Arc::new(SignsOfLife { heartbeat, last_reply });
        let slot_lock = self.numbers.hash_one(runtime).cast_signed();
        let login = self.config.login().await?;
        let (client, connection) = self.config.connect(&login).await?;
        let (slot, role) = (Arc::downgrade(self), self.role.clone());
        let driver = Driver::start(drive(connection, slot, role, signs.clone(), id));
        let begun = connected(&self.config, session::begin(&client, &self.config, slot_lock));
        if !begun.await? {
            session::install(&client, &self.config).await?;
        }
        let session = connected(&self.config, async {
            self.role.begin(&client, slot_lock).await.map_err(failed)
        });
        let session = session.await?;
        let driver = driver.keep();
        let runtime = Handle::current();
        Ok(Arc::new(LiveConnection { client, session, signs, runtime, slot_lock, id, driver }))
    }

    /// The connection of this runtime, if it has one.
    pub(super) fn live_on(&self, runtime: runtime::Id) -> Option<Arc<LiveConnection<R>>> {
        self.connections.live(runtime).map(|(_, live)| live)
    }

    /// The connection with this id, if it is still in use.
    pub(super) fn live_with(&self, id: u64) -> Option<Arc<LiveConnection<R>>> {
        self.connections.live_with(id)
    }

    /// Stops using the connection with this id. The outcome of its open requests stays unknown.
    pub(super) fn forget(&self, id: u64) {
        if let Some(live) = self.connections.forget(id) {
            live.driver.abort();
            self.role.interrupted();
        }
    }
}

/// Reads and writes for a connection until it ends.
async fn drive<R: Role>(
    connection: Box<dyn Messages>,
    slot: Weak<ConnectionSlot<R>>,
    role: Arc<R>,
    signs: Arc<SignsOfLife>,
    id: u64,
) {
    driver::drive(connection, |notification| {
        signs.note();
        role.notified(notification);
    })
    .await;
    if let Some(slot) = slot.upgrade() {
        slot.forget(id);
    }
}
