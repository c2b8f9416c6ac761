//! A place in the pool: its connections, one for each runtime, each made when first needed and
//! replaced when it fails or does not answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use tokio::runtime::{self, Handle};
use tokio::time::{Instant, sleep};

use super::config::Config;
use super::connect::{AbandonedSession, Live};
use super::connection::Connection;
use super::requests::{DatabaseReply, DatabaseRequest};
use crate::engines::sql::{Requests, sweep};
use crate::platform::sync::Mutex;
use crate::store::StoreError;
use crate::store::last_reply::LastReply;
use crate::store::slots::{Attempt, Slots, current_runtime, unless_panics};

pub(super) struct ConnectionSlot {
    pub(super) config: Arc<Config>,
    pub(super) last_reply: LastReply,
    connections: Slots<runtime::Id, Arc<LiveConnection>>,
    /// Sessions for which the server may still be at work. They are ended before the next statement,
    /// on whichever runtime, because that may release what they acquire.
    pub(super) abandoned: Mutex<Vec<AbandonedSession>>,
}

/// A connection that is believed to work.
pub(super) struct LiveConnection {
    /// `None` while a statement is under way.
    pub(super) client: Mutex<Option<Box<Live>>>,
    pub(super) session: AbandonedSession,
    pub(super) requests: Arc<Requests<DatabaseRequest>>,
    pub(super) is_closed: AtomicBool,
    /// The runtime that drives it.
    pub(super) runtime: Handle,
    id: u64,
}

impl ConnectionSlot {
    pub(super) fn new(config: Arc<Config>) -> Arc<Self> {
        let (connections, abandoned) = Default::default();
        Arc::new(Self { config, last_reply: LastReply::new(), connections, abandoned })
    }

    /// Returns the connection of this runtime, made now if there is none.
    pub(super) async fn get(self: &Arc<Self>) -> Result<Connection, StoreError> {
        let runtime = current_runtime()?;
        match self.connections.live(runtime.id()) {
            Some((_, live)) if !live.is_closed.load(Ordering::Acquire) => {
                return Ok(Connection { slot: self.clone(), live });
            }
            Some((closed, _)) => drop(self.connections.forget(closed)),
            None => {}
        }
        let connect = |attempt| {
            runtime.spawn(run_connection(self.clone(), runtime.id(), attempt));
        };
        let live = self.connections.get(runtime.id(), connect).await?;
        Ok(Connection { slot: self.clone(), live })
    }

    async fn connect(
        &self,
        runtime: runtime::Id,
        id: u64,
    ) -> Result<Arc<LiveConnection>, StoreError> {
        let outcome = unless_panics(Live::connect(&self.config)).await.map(|live| {
            self.last_reply.record();
            let (requests, is_closed) = Default::default();
            let session = live.session();
            let client = Mutex::new(Some(Box::new(live)));
            Arc::new(LiveConnection {
                client,
                session,
                requests,
                is_closed,
                runtime: Handle::current(),
                id,
            })
        });
        self.connections.settle(runtime, id, &outcome);
        outcome
    }

    /// Stops using a connection, whose session may still execute a statement.
    pub(super) fn abandon(&self, live: &LiveConnection) {
        live.is_closed.store(true, Ordering::Release);
        let mut abandoned = self.abandoned.lock();
        if !abandoned.contains(&live.session) {
            abandoned.push(live.session.clone());
        }
        drop(abandoned);
        drop(self.connections.forget(live.id));
    }
}

/// Connects, returns the outcome to the callers that wait for it, and asks with each heartbeat
/// whether a sweep is due, which also checks the connection.
async fn run_connection(
    slot: Arc<ConnectionSlot>,
    runtime: runtime::Id,
    attempt: Attempt<Arc<LiveConnection>>,
) {
    let task = HeartbeatTask { slot: Arc::downgrade(&slot), id: attempt.id };
    let outcome = slot.connect(runtime, attempt.id).await;
    let is_connected = outcome.is_ok();
    attempt.finish(outcome);
    drop(slot);
    if is_connected {
        task.until_closed().await;
    }
}

/// Keeps neither the connection nor its slot alive while it sleeps: both close with their store.
struct HeartbeatTask {
    slot: Weak<ConnectionSlot>,
    id: u64,
}

impl HeartbeatTask {
    async fn until_closed(&self) {
        loop {
            let asked = Instant::now();
            let Some(slot) = self.slot.upgrade() else { return };
            let Some(live) = slot.connections.live_with(self.id) else { return };
            let heartbeat = slot.config.timing.heartbeat;
            let connection = Connection { slot, live };
            // Whatever fails closes the connection.
            let swept = connection.run(DatabaseRequest::Sweep).await;
            drop(connection);
            let more = matches!(swept, Ok(DatabaseReply::Swept(true)));
            sleep(sweep::pause_after(more, asked, heartbeat)).await;
        }
    }
}

impl Drop for HeartbeatTask {
    /// Stops using the connection, also when a runtime ends and takes both along.
    fn drop(&mut self) {
        if let Some(slot) = self.slot.upgrade() {
            drop(slot.connections.forget(self.id));
        }
    }
}
