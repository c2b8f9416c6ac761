//! The requests of a store: in which order they are sent, and which of them share a statement.

use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::acquire_reply::Clock;
use super::connection_slot::{ConnectionSlot, LiveConnection};
use super::failure::Failure;
use super::queries::Queries;
use crate::engines::sql::{Execute, Request, Statement};
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, ReleaseRequest, RenewRequest, StoreError,
};

/// A request to the database.
#[derive(Clone)]
pub(super) enum DatabaseRequest {
    /// Acquires a lock, which is exclusive and single, if it has no row.
    Insert { claim: Arc<Claim>, ttl: Duration },
    /// Acquires any lock. With `listener_lock`, the claim can wait in the queue.
    Acquire { request: AcquireRequest, listener_lock: Option<i64> },
    /// Releases a lock, which is exclusive and single, if no claim waits for it.
    Delete(Arc<Claim>),
    /// Releases any lock, or lets it end after a delay.
    Release(ReleaseRequest),
    /// Renews an exclusive lease.
    Renew(RenewRequest),
    /// Renews any lease.
    RenewShared(RenewRequest),
}

impl DatabaseRequest {
    /// The claim that sends the request.
    pub(super) fn claim(&self) -> Option<&Arc<Claim>> {
        match self {
            Self::Insert { claim, .. } | Self::Delete(claim) => Some(claim),
            Self::Acquire { request, .. } => Some(&request.claim),
            Self::Release(release) => Some(&release.claim),
            Self::Renew(renewal) | Self::RenewShared(renewal) => Some(&renewal.claim),
        }
    }

    /// The claim for which it may acquire locks.
    fn acquires(&self) -> Option<&Arc<Claim>> {
        match self {
            Self::Insert { claim, .. }
            | Self::Acquire { request: AcquireRequest { claim, .. }, .. } => Some(claim),
            _ => None,
        }
    }
}

/// The reply to a request.
pub(super) enum DatabaseReply {
    /// The counter of an acquisition; `None` if the lock has a row.
    Inserted(Option<i64>),
    /// `None` if the function returned what it cannot return.
    Acquired(Option<(AcquireOutcome, Clock)>),
    /// Whether the deleted lease still ran; `None` if nothing was deleted.
    Deleted(Option<bool>),
    /// Whether the claim held all its locks.
    Held(bool),
    /// Another transaction made the server roll the statement back.
    Conflict,
}

impl Request for DatabaseRequest {
    type Reply = DatabaseReply;

    fn priority(&self) -> usize {
        match self {
            Self::Renew(_) | Self::RenewShared(_) => 0,
            Self::Delete(_) | Self::Release(_) => 1,
            Self::Insert { .. } | Self::Acquire { .. } => 2,
        }
    }

    fn joins(&self, others: &[Self]) -> bool {
        let alike = || others.first().is_some_and(|it| discriminant(self) == discriminant(it));
        match self {
            Self::Acquire { .. } => false,
            // A statement changes a row once: of two renewals of a claim, one would be left out.
            Self::Renew(renewal) | Self::RenewShared(renewal) => {
                let token = renewal.claim.token();
                alike() && others.iter().all(|it| it.claim().is_none_or(|it| it.token() != token))
            }
            _ => alike(),
        }
    }

    fn outlives_caller(&self) -> bool {
        self.priority() < 2
    }
}

/// Executes requests over a connection.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) slot: Arc<ConnectionSlot<Queries>>,
    pub(super) live: Arc<LiveConnection<Queries>>,
}

impl Execute<DatabaseRequest> for Connection {
    fn execute(&self, batch: Vec<DatabaseRequest>) -> Statement<DatabaseRequest> {
        batch.iter().filter_map(DatabaseRequest::acquires).for_each(|claim| claim.departs());
        let Self { slot, live } = self.clone();
        Box::pin(async move {
            if batch.iter().all(DatabaseRequest::outlives_caller) {
                // An error may come after the first commit of `release.sql`.
                return slot.repeated(&live, &*batch).await.map_err(StoreError::sent);
            }
            // Only a caller that still waits repeats an acquisition. Otherwise it could follow the
            // release that undoes it.
            match slot.once(&live, &*batch).await {
                Err(Failure { is_conflict: true, .. }) => {
                    Ok(batch.iter().map(|_| DatabaseReply::Conflict).collect())
                }
                outcome => outcome.map_err(|failure| failure.error),
            }
        })
    }

    fn is_usable(&self) -> bool {
        !self.live.client.is_closed()
    }

    fn runtime(&self) -> &Handle {
        &self.live.runtime
    }
}
