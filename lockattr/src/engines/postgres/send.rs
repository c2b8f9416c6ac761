//! Sends requests over the connections for their keys.

use std::sync::Arc;

use futures_util::future::join_all;

use super::connection_slot::ConnectionSlot;
use super::queries::Queries;
use super::requests::{Connection, DatabaseReply, DatabaseRequest};
use super::{PostgresStore, unexpected_reply};
use crate::engines::sql::Execute;
use crate::store::{Claim, LockKey, StoreError, connection_for};

impl Connection {
    async fn over(slot: &Arc<ConnectionSlot<Queries>>) -> Result<Self, StoreError> {
        Ok(Self { live: slot.get().await?, slot: slot.clone() })
    }

    pub(super) async fn run(&self, request: DatabaseRequest) -> Result<DatabaseReply, StoreError> {
        self.live.session.requests.run(self, request).await
    }
}

impl PostgresStore {
    /// The connection for a key: always the same one, so that commands keep their order.
    pub(super) fn slot(&self, key: &LockKey) -> &Arc<ConnectionSlot<Queries>> {
        &self.slots[self.slot_index(key)]
    }

    fn slot_index(&self, key: &LockKey) -> usize {
        connection_for(key, self.slots.len())
    }

    /// Sends one request. If the connection ends before, sends it over the next one.
    async fn run(
        &self,
        key: &LockKey,
        request: impl Fn() -> DatabaseRequest,
    ) -> Result<DatabaseReply, StoreError> {
        let connection = Connection::over(self.slot(key)).await?;
        match connection.run(request()).await {
            Err(error) if error.is_not_sent() && !connection.is_usable() => {}
            reply => return reply,
        }
        Connection::over(self.slot(key)).await?.run(request()).await
    }

    /// The same for a request that may acquire locks for the claim. Without a reply, its connection
    /// is remembered.
    pub(super) async fn acquire_by(
        &self,
        claim: &Claim,
        request: impl Fn() -> DatabaseRequest,
    ) -> Result<DatabaseReply, StoreError> {
        let mut connection = Connection::over(self.slot(claim.key())).await?;
        let mut is_last = false;
        loop {
            let under_way = self.unanswered.begin(claim, connection.clone());
            let reply = connection.run(request()).await;
            let may_be_executed = matches!(&reply, Err(error) if !error.is_not_sent());
            if !may_be_executed {
                under_way.answered();
            }
            if reply.is_ok() || may_be_executed || is_last || connection.is_usable() {
                return reply;
            }
            connection = Connection::over(self.slot(claim.key())).await?;
            is_last = true;
        }
    }

    /// Sends each request over the connection for its key, all at once.
    pub(super) async fn run_each(
        &self,
        requests: Vec<(&LockKey, DatabaseRequest)>,
    ) -> Vec<Result<DatabaseReply, StoreError>> {
        if let [(key, request)] = &requests[..] {
            return vec![self.run(key, || request.clone()).await];
        }
        let count = requests.len();
        let mut by_slot: Vec<_> = self.slots.iter().map(|_| (Vec::new(), Vec::new())).collect();
        for (index, (key, request)) in requests.into_iter().enumerate() {
            let (indices, requests) = &mut by_slot[self.slot_index(key)];
            indices.push(index);
            requests.push(request);
        }
        let replies = self.slots.iter().zip(by_slot).map(async |(slot, (indices, requests))| {
            if requests.is_empty() {
                return (indices, Vec::new());
            }
            let replies = match Connection::over(slot).await {
                Ok(connection) => {
                    let requests = requests.into_iter();
                    connection.live.session.requests.run_all(&connection, requests).await
                }
                Err(error) => indices.iter().map(|_| Err(error.clone())).collect(),
            };
            (indices, replies)
        });
        let mut results: Vec<_> = (0..count).map(|_| Err(unexpected_reply())).collect();
        for (indices, replies) in join_all(replies).await {
            for (index, reply) in indices.into_iter().zip(replies) {
                results[index] = reply;
            }
        }
        results
    }
}
