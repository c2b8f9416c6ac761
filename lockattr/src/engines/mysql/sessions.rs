//! Locks that belong to connections (`GET_LOCK`): each has its own connection, and ends with it.

mod acquire;
mod claims;
mod completing;
mod keeper;
mod numbers;
mod operator;
mod pool;
mod release;
mod session;
mod statements;

use std::sync::Arc;

use tokio::sync::Mutex as AsyncMutex;

use super::config::Config;
use super::connect::Live;
use crate::store::{StoreError, Subscriber, Subscribers};
use claims::Claims;
pub(super) use pool::MAX_SESSIONS;
use pool::Pool;
use session::Use;

/// All connections of a store, and the claims that they serve.
pub(super) struct Sessions {
    config: Arc<Config>,
    subscribers: Subscribers,
    claims: Claims,
    pool: Pool,
    /// Held while a session is ended on the server, so that one connection is enough for that.
    ending: AsyncMutex<()>,
}

impl Sessions {
    pub(super) fn new(config: Arc<Config>) -> Arc<Self> {
        let (subscribers, claims, ending) = Default::default();
        let pool = Pool::new(config.max_sessions);
        Arc::new(Self { config, subscribers, claims, pool, ending })
    }

    pub(super) fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.subscribers.add(subscriber);
    }

    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        Live::connect(&self.config).await.map(|live| drop(live.abandon()))
    }

    /// How many idle connections of a runtime are kept.
    fn most_idle(&self) -> usize {
        self.config.timing.database_connections()
    }

    fn answered(&self, using: &mut Use) {
        using.connection.answered = true;
        using.connection.is_busy = false;
    }

    /// The claim that this connection serves ends. The next one may use the connection.
    fn finish(&self, mut using: Use) {
        let (session, token) = (using.session.clone(), using.connection.token.take());
        drop(using);
        if let Some(token) = token {
            self.claims.remove(token, &session);
            self.pool.recycle(&session);
        }
    }

    /// The connection is of no use any more. A lock that it held is lost.
    fn end(&self, mut using: Use) {
        let (session, token) = (using.session.clone(), using.connection.token.take());
        let held = using.connection.held.take();
        session.end();
        drop(using);
        drop(session.place.lock().take());
        let Some(token) = token else { return };
        self.claims.remove(token, &session);
        // Notify the holder now, instead of at its next renewal.
        if held.is_some()
            && let Some(subscriber) = self.subscribers.get(token.subscriber())
        {
            subscriber.lost(token);
        }
    }

    fn no_reply(&self) -> StoreError {
        let (address, limit) = (&self.config.address, self.config.timing.response_timeout);
        StoreError::new(format!("no answer from {address} within {limit:?}"))
    }
}

/// Claims that wait on the server give up.
impl Drop for Sessions {
    fn drop(&mut self) {
        self.claims.all_give_up();
    }
}
