//! For operators: takes a lock by ending the session that holds it.

use std::sync::Arc;

use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

use super::super::failure::Failure;
use super::inspect::holder_id;
use super::session::Session;
use super::{Inner, sql};
use crate::HolderId;
use crate::store::{Claim, LockKey, ReleaseOutcome, ReleaseRequest, StoreError};

impl Inner {
    /// Takes a lock from the session with this id, and returns whether it had it.
    pub(super) async fn force_release(
        self: &Arc<Self>,
        key: &LockKey,
        holder: HolderId,
    ) -> Result<bool, StoreError> {
        let session = self.shared(key).await?;
        let holders = session.holders(key.name()).await.map_err(|failure| failure.error)?;
        let Some((pid, _)) = holders.into_iter().find(|(_, id)| *id == holder) else {
            return Ok(false);
        };
        match self.claims.holder(key.name(), pid) {
            Some((claim, _)) => self.release_local(&claim).await,
            None => {
                let ended = session.end(key.name(), pid).await;
                ended.map_err(|failure| self.with_advice(failure, pid))
            }
        }
    }

    /// Releases a lock of this store. Its session stays open, because it holds other locks too.
    async fn release_local(self: &Arc<Self>, claim: &Arc<Claim>) -> Result<bool, StoreError> {
        let released = self.release(&ReleaseRequest::new(claim.clone())).await?;
        if let Some(subscriber) = self.notifications.subscribers.get(claim.token().subscriber()) {
            subscriber.lost(claim.token());
        }
        Ok(released == ReleaseOutcome::Released)
    }

    /// Adds advice if this user may not end that session.
    fn with_advice(&self, failure: Failure, pid: i32) -> StoreError {
        let cause = failure.error.downcast_ref::<tokio_postgres::Error>();
        if cause.and_then(tokio_postgres::Error::code) != Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
            return failure.error;
        }
        let sentence = format!(
            "{}: a session of another user holds the lock: end it as a user with \
             the role `pg_signal_backend`, with `select pg_terminate_backend({pid})`",
            self.config.address
        );
        StoreError::new(sentence).not_sent()
    }
}

impl Session {
    /// The server processes that hold the lock of this name, and as which holders.
    async fn holders(&self, name: &str) -> Result<Vec<(i32, HolderId)>, Failure> {
        let params: [(&(dyn ToSql + Sync), Type); 1] = [(&name, Type::TEXT)];
        let rows = self.within_timeout(self.client.query_typed(sql::HOLDERS, &params)).await?;
        let read = |row| {
            let (pid, began): (i32, Option<String>) = (self.read(row, 1)?, self.read(row, 2)?);
            Ok((pid, holder_id(pid, began.as_deref())))
        };
        rows.iter().map(read).collect()
    }

    /// Ends the session of this server process, if it still holds the lock of this name.
    async fn end(&self, name: &str, pid: i32) -> Result<bool, Failure> {
        let params: [(&(dyn ToSql + Sync), Type); 2] = [(&name, Type::TEXT), (&pid, Type::INT4)];
        let rows = self.within_timeout(self.client.query_typed(sql::END, &params)).await?;
        let mut ended = false;
        for row in &rows {
            ended |= self.read::<bool>(row, 1)?;
        }
        Ok(ended)
    }
}
