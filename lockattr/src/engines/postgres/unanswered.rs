//! Ends the sessions of connections that were given up with an acquisition without a reply.

use super::queries::Query;
use super::requests::Connection;
use super::session::end_session;
use super::statements::Statements;
use crate::engines::sql::{self, OfRuntime};
use crate::store::StoreError;
use crate::store::slots::is_current;

pub(super) type Unanswered = sql::Unanswered<Connection>;

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

impl OfRuntime for Connection {
    fn is_here(&self) -> bool {
        is_current(&self.live.runtime)
    }
}

impl Connection {
    /// Ends its session, unless its own runtime has done so by connecting again.
    pub(super) async fn end(&self) -> Result<(), StoreError> {
        let next = self.slot.live_on(self.live.runtime.id());
        if next.is_some_and(|next| !std::ptr::eq(&*next, &*self.live)) {
            return Ok(());
        }
        self.slot.query(&EndSession(self.live.slot_lock)).await
    }
}
