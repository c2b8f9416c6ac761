//! Sends requests over the connections for their keys.

use std::sync::Arc;

use super::connection_slot::ConnectionSlot;
use super::failure::unexpected_reply;
use super::leases::Leases;
use super::requests::{DatabaseReply, DatabaseRequest};
use crate::engines::sql::Execute;
use crate::store::{LockKey, ReleaseRequest, StoreError, connection_for, silence};

/// Over how many connections a request is sent at most, if each ends before.
const MAX_CONNECTIONS: usize = 3;

impl Leases {
    /// The connection for a lock: always the same one, so that requests keep their order.
    pub(super) fn slot(&self, key: &LockKey) -> &Arc<ConnectionSlot> {
        &self.slots[connection_for(key, self.slots.len())]
    }

    /// Sends a request. If the connection ends, sends it over the next one.
    ///
    /// An acquisition without a reply is remembered, and only a caller that still waits repeats it:
    /// otherwise it could follow the release that undoes it.
    pub(super) async fn run(
        &self,
        slot: &Arc<ConnectionSlot>,
        request: DatabaseRequest,
    ) -> Result<DatabaseReply, StoreError> {
        // An earlier attempt may have been executed.
        let (mut first, mut not_sent) = (None, None);
        for _ in 0..MAX_CONNECTIONS {
            let connection = match slot.get().await {
                Ok(connection) => connection,
                Err(error) => return Err(first.unwrap_or(error)),
            };
            let acquires = request.acquires();
            let under_way = acquires.map(|claim| self.unanswered.begin(claim, connection.clone()));
            let reply = connection.run(request.clone()).await;
            if let Some(under_way) = under_way {
                // The session of a connection that was given up ends before any other statement.
                under_way.answered();
            }
            match reply {
                Err(error) if error.is_not_sent() && !connection.is_usable() => {
                    not_sent = Some(error);
                }
                Ok(DatabaseReply::Broken(error)) if first.is_none() => first = Some(error),
                Ok(DatabaseReply::Broken(error) | DatabaseReply::Failed(error)) => {
                    return Err(error);
                }
                reply => return reply?.after(first),
            }
        }
        Err(first.or(not_sent).unwrap_or_else(|| unexpected_reply("a request")))
    }

    /// Releases locks; behind an acquisition of their claim that another runtime has sent and that
    /// has no reply. Ends its session if it stays silent, because no thread may drive that runtime
    /// any more.
    pub(super) async fn release_one(
        &self,
        release: &ReleaseRequest,
        plain: bool,
    ) -> Result<bool, StoreError> {
        let token = release.claim.token();
        let mut undone = false;
        if let Some(connection) = self.unanswered.elsewhere(token) {
            let slot = &connection.slot;
            let request = connection.run(DatabaseRequest::Release(release.clone(), plain));
            let limit = slot.config.timing.response_timeout;
            match silence::unless_silent(&slot.last_reply, limit, request).await {
                Some(Ok(DatabaseReply::Held(held))) => undone = held,
                _ => connection.abandon(),
            }
            self.unanswered.forget(token);
        }
        let request = DatabaseRequest::Release(release.clone(), plain);
        match self.run(self.slot(release.claim.key()), request).await? {
            // What was undone before is not held any more.
            DatabaseReply::Held(held) => Ok(held | undone),
            _ => Err(unexpected_reply("a release")),
        }
    }

    /// Sends a query.
    pub(super) async fn query(
        &self,
        slot: &Arc<ConnectionSlot>,
        request: DatabaseRequest,
    ) -> Result<Vec<mysql_async::Row>, StoreError> {
        match self.run(slot, request).await? {
            DatabaseReply::Rows(rows) => Ok(rows),
            _ => Err(unexpected_reply("a query")),
        }
    }
}
