//! A connection that executes one statement at a time.
//!
//! A caller may give up at any point. A statement that was sent still runs to its end, so that the
//! next one finds an idle connection.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::runtime::Handle;

use super::connect::Live;
use super::connection_slot::{ConnectionSlot, LiveConnection};
use super::failure::Failure;
use super::requests::{DatabaseReply, DatabaseRequest};
use crate::engines::sql::{Execute, OfRuntime, Statement};
use crate::store::StoreError;
use crate::store::slots::is_current;

#[derive(Clone)]
pub(super) struct Connection {
    pub(super) slot: Arc<ConnectionSlot>,
    pub(super) live: Arc<LiveConnection>,
}

impl Execute<DatabaseRequest> for Connection {
    /// The client waits for a reply before it sends the next statement.
    const IN_FLIGHT: usize = 1;

    /// A power of two, so that there are few different statements.
    fn share(waiting: usize) -> usize {
        waiting.checked_ilog2().map_or(0, |power| 1 << power)
    }

    fn execute(&self, batch: Vec<DatabaseRequest>) -> Statement<DatabaseRequest> {
        batch.iter().filter_map(DatabaseRequest::acquires).for_each(|claim| claim.departs());
        let connection = self.clone();
        Box::pin(async move { connection.execute_all(&batch).await })
    }

    fn is_usable(&self) -> bool {
        !self.live.is_closed.load(Ordering::Acquire)
    }

    fn runtime(&self) -> &Handle {
        &self.live.runtime
    }
}

impl OfRuntime for Connection {
    fn is_here(&self) -> bool {
        is_current(&self.live.runtime)
    }
}

impl Connection {
    pub(super) async fn run(&self, request: DatabaseRequest) -> Result<DatabaseReply, StoreError> {
        self.live.requests.run(self, request).await
    }

    /// Stops using it. Its session ends before the next statement of another connection.
    pub(super) fn abandon(&self) {
        let client = self.live.client.lock().take();
        self.slot.abandon(&self.live);
        if let Some(client) = client {
            client.abandon();
        }
    }

    async fn execute_all(
        &self,
        batch: &[DatabaseRequest],
    ) -> Result<Vec<DatabaseReply>, StoreError> {
        // In one order, so that two batches seldom wait for each other's rows.
        let mut order: Vec<usize> = (0..batch.len()).collect();
        order.sort_by_key(|&at| batch[at].name());
        let requests: Vec<_> = order.iter().map(|&at| &batch[at]).collect();
        let replies = {
            let mut client = Client::of(self)?;
            client.end_abandoned().await?;
            client.replies(&requests).await
        };
        let mut replies: Vec<_> = order.into_iter().zip(replies).collect();
        replies.sort_unstable_by_key(|(at, _)| *at);
        Ok(replies.into_iter().map(|(_, reply)| reply).collect())
    }
}

/// The client of a connection, while a statement uses it.
pub(super) struct Client<'a> {
    pub(super) connection: &'a Connection,
    live: Option<Box<Live>>,
    /// Whether a statement was sent and has no reply, or the connection is unusable.
    pub(super) is_broken: bool,
}

impl<'a> Client<'a> {
    fn of(connection: &'a Connection) -> Result<Self, StoreError> {
        let live = connection.live.client.lock().take();
        match live {
            Some(live) => Ok(Self { connection, live: Some(live), is_broken: false }),
            None => Err(gone().not_sent()),
        }
    }

    /// Always there, until this is dropped.
    pub(super) fn live(&mut self) -> Result<&mut Live, Failure> {
        self.live.as_deref_mut().ok_or(Failure::Unexpected("a statement"))
    }

    /// Ends the sessions that were abandoned.
    async fn end_abandoned(&mut self) -> Result<(), StoreError> {
        let slot = &self.connection.slot;
        loop {
            let next = slot.abandoned.lock().first().cloned();
            let Some(session) = next else { return Ok(()) };
            self.is_broken = true;
            let Ok(live) = self.live() else { return Err(gone().not_sent()) };
            live.end(&slot.config, &session).await?;
            self.is_broken = false;
            // Only now, because another runtime must not believe that it has ended before.
            slot.abandoned.lock().retain(|it| *it != session);
        }
    }

    /// Executes requests, each by itself if the server refuses them together: the refusal may be
    /// about one of them.
    async fn replies(&mut self, requests: &[&DatabaseRequest]) -> Vec<DatabaseReply> {
        let config = &self.connection.slot.config;
        let failure = match self.execute(requests).await {
            Ok(replies) => return replies,
            Err(failure) => failure,
        };
        if requests.len() == 1 || failure.ends_connection() {
            return failure.replies(config, requests.len());
        }
        let refusal = failure.error(config).sent();
        let mut replies = Vec::with_capacity(requests.len());
        for (nth, request) in requests.iter().enumerate() {
            match self.execute(&[request]).await {
                // A part of the statement may have been committed, so what is not held may be released.
                Ok(reply) => replies.extend(reply.into_iter().map(|reply| {
                    reply.after(Some(refusal.clone())).unwrap_or_else(DatabaseReply::Failed)
                })),
                Err(failure) if failure.ends_connection() => {
                    replies.extend(failure.replies(config, requests.len() - nth));
                    break;
                }
                Err(failure) => replies.extend(failure.replies(config, 1)),
            }
        }
        replies
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        let Some(live) = self.live.take() else { return };
        if self.is_broken {
            self.connection.slot.abandon(&self.connection.live);
        }
        if self.connection.is_usable() {
            *self.connection.live.client.lock() = Some(live);
        } else {
            live.abandon();
        }
    }
}

fn gone() -> StoreError {
    StoreError::new("the connection ended before the request was sent")
}
