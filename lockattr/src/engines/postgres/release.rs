//! Releases locks: those that no claim waits for by a plain statement, any other by a function.

use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::requests::{DatabaseReply, DatabaseRequest};
use super::{PostgresStore, held, is_plain};
use crate::engines::sql::Execute;
use crate::store::{ReleaseRequest, StoreError};

/// After how many releases the rows that dead processes left are swept.
const SWEEP_EVERY: u64 = 256;

impl PostgresStore {
    pub(super) async fn release_each(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<bool, StoreError>> {
        let undone = join_all(releases.iter().map(|release| self.undo(release))).await;
        let now = Instant::now();
        let first = releases.iter().map(|release| {
            let (claim, key) = (&release.claim, release.claim.key());
            let is_free = is_plain(claim)
                && release.after.is_zero()
                && !self.contended.contains(key.name(), now);
            match is_free {
                true => (key, DatabaseRequest::Delete(claim.clone())),
                false => (key, DatabaseRequest::Release(release.clone())),
            }
        });
        let mut replies = self.run_each(first.collect()).await;
        let refused = |reply: &Result<_, _>| matches!(reply, Ok(DatabaseReply::Deleted(None)));
        let left: Vec<_> = (0..releases.len()).filter(|&at| refused(&replies[at])).collect();
        let second = left.iter().map(|&at| {
            let release = &releases[at];
            self.contended.note(release.claim.key().name());
            (release.claim.key(), DatabaseRequest::Release(release.clone()))
        });
        let mut second: Vec<_> = second.collect();
        if let [release, ..] = releases
            && self.released.fetch_add(1, Ordering::Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1
        {
            second.push((release.claim.key(), DatabaseRequest::Sweep));
        }
        for (at, reply) in left.iter().zip(self.run_each(second).await) {
            replies[*at] = reply;
        }
        let outcomes = replies.into_iter().zip(undone);
        // What was undone before is not held any more.
        outcomes.map(|(reply, undone)| Ok(undone? | held(&reply?)?)).collect()
    }

    /// Releases the locks of a claim over the connection on which an acquisition of it has no reply,
    /// if that belongs to another runtime. Ends the session of that connection if it stays silent.
    async fn undo(&self, release: &ReleaseRequest) -> Result<bool, StoreError> {
        let token = release.claim.token();
        let Some(connection) = self.unanswered.take(token).filter(|it| !it.is_here()) else {
            return Ok(false);
        };
        if connection.is_usable()
            && let Ok(reply) = connection.run(DatabaseRequest::Release(release.clone())).await
        {
            return held(&reply);
        }
        let ended = connection.end().await;
        if ended.is_err() {
            // A later attempt ends it.
            self.unanswered.add(token, connection);
        }
        ended.map(|()| false)
    }
}
