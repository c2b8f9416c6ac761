//! Acquisitions without a reply, and the connections over which they were sent.
//!
//! A release that undoes an acquisition must be executed after it. Over the same connection it is.
//! But the release may come from another runtime, which has a connection of its own: the runtime of
//! the acquisition may no longer be driven by any thread.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::queries::Query;
use super::requests::Connection;
use super::session::end_session;
use super::statements::Statements;
use crate::platform::sync::Mutex;
use crate::store::slots::current_runtime;
use crate::store::{OwnerToken, StoreError};

#[derive(Default)]
pub(super) struct Unanswered {
    connections: Mutex<HashMap<OwnerToken, Connection>>,
    /// How many there are, so that most releases need no lock.
    count: AtomicUsize,
}

/// An acquisition under way. Dropped without a reply, it is remembered.
pub(super) struct UnderWay<'a> {
    unanswered: &'a Unanswered,
    claim: Option<(OwnerToken, Connection)>,
}

impl Unanswered {
    /// An acquisition of the claim with this token is sent over `connection`.
    pub(super) fn begin(&self, token: OwnerToken, connection: Connection) -> UnderWay<'_> {
        UnderWay { unanswered: self, claim: Some((token, connection)) }
    }

    /// The connection over which an acquisition of the claim was sent, if it has no reply and another
    /// runtime drives that connection.
    pub(super) fn elsewhere(&self, token: OwnerToken) -> Option<Connection> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let connection = self.connections.lock().get(&token).cloned()?;
        if connection.is_here() {
            self.forget(token);
            return None;
        }
        Some(connection)
    }

    pub(super) fn forget(&self, token: OwnerToken) {
        let mut connections = self.connections.lock();
        connections.remove(&token);
        self.count.store(connections.len(), Ordering::Release);
    }

    fn add(&self, token: OwnerToken, connection: Connection) {
        let mut connections = self.connections.lock();
        connections.insert(token, connection);
        self.count.store(connections.len(), Ordering::Release);
    }
}

impl UnderWay<'_> {
    /// The server has replied, or was not asked.
    pub(super) fn answered(mut self) {
        self.claim = None;
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some((token, connection)) = self.claim.take() {
            self.unanswered.add(token, connection);
        }
    }
}

/// Ends the session of a connection that was given up, and returns once it has ended: the server
/// executes nothing of what was sent over it after that.
pub(super) struct EndSession(pub(super) i64);

impl Query for EndSession {
    type Output = ();

    async fn run(
        &self,
        _statements: &Statements,
        client: &tokio_postgres::Client,
    ) -> Result<(), tokio_postgres::Error> {
        client.batch_execute(&end_session(self.0)).await
    }
}

impl Connection {
    /// Whether the runtime of the caller drives it.
    pub(super) fn is_here(&self) -> bool {
        current_runtime().is_ok_and(|runtime| runtime.id() == self.live.runtime)
    }

    /// Ends its session, unless its own runtime has done so by connecting again.
    pub(super) async fn end(&self) -> Result<(), StoreError> {
        let next = self.slot.live_on(self.live.runtime);
        if next.is_some_and(|next| !std::ptr::eq(&*next, &*self.live)) {
            return Ok(());
        }
        self.slot.query(&EndSession(self.live.slot_lock)).await
    }
}
