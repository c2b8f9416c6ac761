//! Releases locks: those that no claim waits for by a plain statement, any other by a function.

use std::slice::from_ref;

use futures_util::future::join_all;
use tokio::time::{Instant, timeout};

use super::requests::{Connection, DatabaseReply, DatabaseRequest};
use super::{PostgresStore, held, is_plain, unexpected_reply};
use crate::engines::sql::Execute;
use crate::store::{ReleaseRequest, StoreError};

impl PostgresStore {
    /// Releases locks; each behind an acquisition of its claim that another runtime has sent and that
    /// has no reply.
    pub(super) async fn release_each(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<bool, StoreError>> {
        let elsewhere = |it: &ReleaseRequest| self.unanswered.elsewhere(it.claim.token());
        let elsewhere: Vec<_> = releases.iter().map(elsewhere).collect();
        if elsewhere.iter().all(Option::is_none) {
            return self.release_here(releases).await;
        }
        let outcomes = releases.iter().zip(elsewhere).map(async |(release, connection)| {
            let undone = match connection {
                Some(connection) => self.undo(release, &connection).await?,
                None => false,
            };
            let here = self.release_here(from_ref(release)).await.pop();
            // What was undone before is not held any more.
            Ok(undone | here.unwrap_or_else(|| Err(unexpected_reply()))?)
        });
        join_all(outcomes).await
    }

    async fn release_here(&self, releases: &[ReleaseRequest]) -> Vec<Result<bool, StoreError>> {
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
        for (at, reply) in left.iter().zip(self.run_each(second.collect()).await) {
            replies[*at] = reply;
        }
        replies.into_iter().map(|reply| held(&reply?)).collect()
    }

    /// Releases the locks of a claim over the connection of another runtime. Ends its session if it
    /// stays silent, because no thread may drive that runtime any more.
    async fn undo(
        &self,
        release: &ReleaseRequest,
        connection: &Connection,
    ) -> Result<bool, StoreError> {
        let limit = connection.slot.config.timing.response_timeout;
        let request = || connection.run(DatabaseRequest::Release(release.clone()));
        let reply = match connection.is_usable() {
            true => timeout(limit, request()).await.ok().and_then(Result::ok),
            false => None,
        };
        let undone = match reply {
            Some(reply) => held(&reply)?,
            None => connection.end().await.map(|()| false)?,
        };
        self.unanswered.forget(release.claim.token());
        Ok(undone)
    }
}
