//! Acquires locks: a free one by a plain statement, any other by a function.

use tokio::time::Instant;

use super::acquire_reply::acquired;
use super::queries::MAX_ATTEMPTS;
use super::requests::{DatabaseReply, DatabaseRequest};
use super::{PostgresStore, is_plain, unexpected_reply};
use crate::store::{AcquireOutcome, AcquireRequest, StoreError, Waiting};

impl PostgresStore {
    /// Acquires a free lock by one plain statement.
    pub(super) async fn acquire_free(
        &self,
        request: &AcquireRequest,
    ) -> Result<Option<AcquireOutcome>, StoreError> {
        let (claim, key) = (&request.claim, request.claim.key());
        if !is_plain(claim) || self.contended.contains(key.name(), Instant::now()) {
            return Ok(None);
        }
        let insert = || DatabaseRequest::Insert { claim: claim.clone(), ttl: request.ttl };
        match self.acquire_by(claim, insert).await? {
            DatabaseReply::Inserted(Some(counter)) => {
                acquired(counter, false).map(Some).ok_or_else(unexpected_reply)
            }
            DatabaseReply::Inserted(None) => {
                claim.returns();
                self.contended.note(key.name());
                Ok(None)
            }
            DatabaseReply::Conflict => {
                claim.returns();
                Ok(None)
            }
            _ => Err(unexpected_reply()),
        }
    }

    /// Acquires a lock that is not free, or waits for it.
    pub(super) async fn acquire_contended(
        &self,
        request: &AcquireRequest,
    ) -> Result<AcquireOutcome, StoreError> {
        let AcquireRequest { claim, ttl, waiting, .. } = request;
        let listener_lock = match waiting {
            Waiting::Not => None,
            // Listen first: a grant for a process that does not listen would be passed on.
            Waiting::Queued | Waiting::Told { .. } => {
                let listener_lock = self.listener.subscribe(claim.token().subscriber()).await?;
                claim.enter_queue(*ttl, *waiting);
                self.listener.role.transaction_waiters.add(claim);
                Some(listener_lock)
            }
        };
        let acquire = || DatabaseRequest::Acquire { request: request.clone(), listener_lock };
        let (mut sent, mut reply) = (Instant::now(), self.acquire_by(claim, acquire).await?);
        for _ in 1..MAX_ATTEMPTS {
            if !matches!(reply, DatabaseReply::Conflict) {
                break;
            }
            (sent, reply) = (Instant::now(), self.acquire_by(claim, acquire).await?);
        }
        let granted = match reply {
            DatabaseReply::Acquired(granted) => granted,
            DatabaseReply::Conflict => return Err(conflict()),
            _ => return Err(unexpected_reply()),
        };
        let (outcome, clock) = granted.ok_or_else(unexpected_reply)?;
        if let Some(micros) = clock {
            self.listener.role.notifications.saw_clock(sent, micros);
        }
        if !matches!(outcome, AcquireOutcome::Acquired { contended: false, .. }) {
            self.contended.note(claim.key().name());
        }
        Ok(outcome)
    }
}

fn conflict() -> StoreError {
    let sentence =
        "other claims for several locks made the server roll the request back: try again";
    StoreError::new(sentence).not_sent()
}
