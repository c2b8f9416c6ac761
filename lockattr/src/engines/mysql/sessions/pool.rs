//! The connections of a store: at most `max_sessions`, for which claims wait in order.

use std::sync::Arc;

use mysql_async::Conn;
use tokio::runtime::{self, Handle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

use super::Sessions;
use super::keeper::keep;
use super::numbers::Numbers;
use super::session::Session;
use crate::engines::mysql::connect::{Live, abandon};
use crate::platform::sync::Mutex;
use crate::store::StoreError;
use crate::store::slots::unless_panics;

/// Two processes with as many fit in a server with the default of 151 connections.
pub(in crate::engines::mysql) const MAX_SESSIONS: usize = 64;

/// The right to use one connection.
pub(super) type Place = OwnedSemaphorePermit;

pub(super) struct Pool {
    /// A place for each connection that a claim uses.
    places: Arc<Semaphore>,
    max_sessions: usize,
    /// By runtime, because a connection dies with the runtime that made it.
    idle: Mutex<Vec<Arc<Session>>>,
}

impl Pool {
    pub(super) fn new(max_sessions: usize) -> Self {
        let places = Arc::new(Semaphore::new(max_sessions));
        Self { places, max_sessions, idle: Mutex::default() }
    }

    /// Waits for a place, behind all calls before.
    async fn place(&self) -> Result<Place, StoreError> {
        let place = self.places.clone().acquire_owned().await;
        // The semaphore is never closed.
        place.map_err(|_closed| StoreError::new("the store has been closed").not_sent())
    }

    /// An idle session of this runtime, if there is one. Otherwise makes room for another one.
    fn take_idle(&self, runtime: runtime::Id) -> Option<Arc<Session>> {
        let mut idle = self.idle.lock();
        idle.retain(|session| !session.is_over());
        if let Some(fits) = idle.iter().rposition(|session| session.runtime.id() == runtime) {
            return Some(idle.swap_remove(fits));
        }
        let used = self.max_sessions.saturating_sub(self.places.available_permits());
        let too_many = (used + idle.len()).saturating_sub(self.max_sessions);
        let few = idle.len().saturating_sub(too_many);
        idle.drain(few..).for_each(|session| session.end());
        None
    }

    /// Keeps a session that no claim uses for the next one.
    pub(super) fn recycle(&self, session: &Arc<Session>) {
        if !session.is_over() {
            self.idle.lock().push(session.clone());
        }
        // The next claim finds the session idle.
        drop(session.place.lock().take());
    }

    /// Ends this session if more than `most` of its runtime are idle. Returns whether it did.
    pub(super) fn end_surplus(&self, session: &Arc<Session>, most: usize) -> bool {
        let mut idle = self.idle.lock();
        let Some(at) = idle.iter().position(|other| Arc::ptr_eq(other, session)) else {
            return false;
        };
        let of_runtime =
            idle.iter().filter(|other| other.runtime.id() == session.runtime.id()).count();
        if of_runtime <= most {
            return false;
        }
        idle.remove(at);
        drop(idle);
        session.end();
        true
    }
}

impl Sessions {
    /// A session for one claim: an idle one, or one that connects.
    pub(super) async fn session(self: &Arc<Self>) -> Result<Arc<Session>, StoreError> {
        let runtime = Handle::try_current().map_err(|_| {
            StoreError::new("this store can only be used inside a tokio runtime").not_sent()
        })?;
        let place = self.pool.place().await?;
        if let Some(session) = self.pool.take_idle(runtime.id()) {
            *session.place.lock() = Some(place);
            return Ok(session);
        }
        let (sender, opened) = oneshot::channel();
        // A caller that gives up leaves the connection to the next one.
        runtime.spawn(self.clone().open(runtime.clone(), place, sender));
        opened.await.unwrap_or_else(|_| {
            Err(StoreError::new("the runtime of the connection has ended").not_sent())
        })
    }

    async fn open(
        self: Arc<Self>,
        runtime: Handle,
        place: Place,
        sender: oneshot::Sender<Result<Arc<Session>, StoreError>>,
    ) {
        let opened = unless_panics(self.connect()).await.map(|(conn, rules)| {
            let session = Session::new(&self.config, conn, rules, runtime);
            *session.place.lock() = Some(place);
            tokio::spawn(keep(Arc::downgrade(&session), Arc::downgrade(&self)));
            session
        });
        if let Err(Ok(session)) = sender.send(opened) {
            self.pool.recycle(&session);
        }
    }

    async fn connect(&self) -> Result<(Conn, (Numbers, Vec<u8>)), StoreError> {
        let Live { mut connection, .. } = Live::connect(&self.config).await?;
        let limit = self.config.timing.response_timeout;
        match timeout(limit, Numbers::read(&mut connection)).await {
            Ok(Ok(rules)) => Ok((connection, rules)),
            failed => {
                abandon(connection);
                Err(self.failure(failed).not_sent())
            }
        }
    }
}
