//! The holders of locks, and the queue for them.

use std::sync::Arc;

use tokio::time::Instant;

use super::claims::Held;
use super::session::Session;
use super::{Inner, label};
use crate::store::{Claim, LockKey, StoreError};
use crate::{Holder, HolderId};

/// The state of a claim in the server's queue.
pub(super) struct QueueStatus {
    /// Whether it is queued.
    pub(super) now: bool,
    pub(super) holder: Option<Box<Holder>>,
}

/// The holder of a claim of this store. Like that of any other, its id is that of the session.
pub(super) fn held_by(claim: &Claim, ends: Option<Instant>, on: &Session) -> Holder {
    let remaining = ends.map(|ends| ends.saturating_duration_since(Instant::now()));
    Holder { id: on.holder_id(), ..Holder::from_value(claim.value(), remaining) }
}

/// The id of the session of a server process. When that began is not known of sessions of other users.
pub(super) fn holder_id(pid: i32, began: Option<&str>) -> HolderId {
    HolderId::of(format!("session {pid} {}", began.unwrap_or_default()))
}

impl Inner {
    /// Whether the claim still holds its locks, and whether others wait for them.
    pub(super) async fn check_held(
        self: &Arc<Self>,
        claim: &Arc<Claim>,
        held: &Held,
    ) -> Result<(bool, bool), StoreError> {
        if held.on.is_over() {
            return Ok((false, false));
        }
        let checked = self.check_all(&held.on, std::iter::once(claim)).await.pop();
        let Some((here, contended)) = checked.transpose()? else { return Ok((false, false)) };
        Ok((here.iter().all(|held| *held), contended.contains(&true)))
    }

    /// Whether a claim is in the server's queue, with that server process.
    pub(super) async fn queue_status(
        self: &Arc<Self>,
        claim: &Arc<Claim>,
        pid: i32,
    ) -> Result<QueueStatus, StoreError> {
        let session = self.shared(claim.key()).await?;
        let sent_at = Instant::now();
        let (clock, now, holder) = self.queue_row(&session, claim, pid).await?;
        self.notifications.saw_clock(sent_at, clock.unsigned_abs());
        let ours = holder.and_then(|pid| self.claims.holder(claim.key().name(), pid));
        Ok(QueueStatus { now, holder: ours.map(|(_, holder)| Box::new(holder)) })
    }

    pub(super) async fn holder(
        self: &Arc<Self>,
        key: &LockKey,
    ) -> Result<Option<Holder>, StoreError> {
        let session = self.shared(key).await?;
        let found = self.holder_row(&session, key.name()).await?;
        Ok(found.map(|(pid, began, name, address)| match self.claims.holder(key.name(), pid) {
            Some((_, holder)) => holder,
            None => {
                let id = holder_id(pid, began.as_deref());
                Holder { id, ..label::read(name.as_deref(), address) }
            }
        }))
    }

    /// Ends another session at the server, even during a statement.
    pub(super) async fn end(
        self: &Arc<Self>,
        claim: &Claim,
        other: &Session,
    ) -> Result<(), StoreError> {
        let session = self.shared(claim.key()).await?;
        let ended = session.run(&other.ending()).await;
        ended.map_err(|failure| failure.error)
    }

    /// Cancels the statement of a waiting session.
    pub(super) async fn cancel(
        self: &Arc<Self>,
        claim: &Claim,
        pid: i32,
    ) -> Result<(), StoreError> {
        let session = self.shared(claim.key()).await?;
        let cancelled = session.run(&format!("select pg_cancel_backend({pid})")).await;
        cancelled.map_err(|failure| failure.error)
    }
}
