//! The connection to the servers: one at a time, replaced when it does not reply.

use std::future::ready;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::stream::{self, StreamExt};
use prost::Message;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;

use super::call::{self, unary};
use super::config::Config;
use super::failure::{Failure, Kind};
use super::login::Accepted;
use super::watches::Watches;
use crate::store::StoreError;
use crate::store::last_reply::LastReply;
use crate::store::silence::unless_silent;
use crate::store::slots::{Attempt, Slots, unless_panics};

/// The one connection to the servers. Lives on the store's own runtime.
pub(super) struct ConnectionSlot {
    pub(super) config: Config,
    pub(super) accepted: Accepted,
    connections: Slots<(), Connection>,
    /// On any connection.
    pub(super) last_reply: LastReply,
}

/// A connection that is believed to work.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) id: u64,
    /// The member at its other end, for errors.
    pub(super) address: Arc<str>,
    pub(super) channel: Channel,
    /// The token that authenticates this store.
    pub(super) token: Option<MetadataValue<Ascii>>,
    pub(super) watches: Arc<Watches>,
    pub(super) last_reply: Arc<LastReply>,
}

impl ConnectionSlot {
    pub(super) fn new(config: Config) -> Arc<Self> {
        let (accepted, connections) = Default::default();
        let last_reply = LastReply::new();
        Arc::new(Self { config, accepted, connections, last_reply })
    }

    /// Sends a request, and waits for the reply until the connection is silent for
    /// `response_timeout`. If the caller drops this,
    /// the outcome of the request is unknown.
    pub(super) async fn send<Q, A>(
        self: &Arc<Self>,
        path: &'static str,
        request: &Q,
    ) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let live = self.get().await?;
        match self.send_on(&live, path, request).await {
            // It was not executed, so it is safe to send again.
            Err(failure) if failure.kind == Kind::BadToken && self.config.authenticates() => {
                let live = self.get().await?;
                self.send_on(&live, path, request).await
            }
            outcome => outcome,
        }
    }

    /// The same, to the member of this connection.
    pub(super) async fn send_on<Q, A>(
        &self,
        live: &Connection,
        path: &'static str,
        request: &Q,
    ) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        self.unless_silent(live, live.unary(path, request.clone())).await
    }

    /// Returns a member's reply. A member that is silent loses the connection.
    pub(super) async fn unless_silent<A>(
        &self,
        live: &Connection,
        request: impl Future<Output = Result<A, Failure>>,
    ) -> Result<A, Failure> {
        let limit = self.config.timing.response_timeout;
        let outcome = unless_silent(&live.last_reply, limit, request).await;
        let outcome = outcome.unwrap_or_else(|| {
            let sentence = format!("no answer from {} within {limit:?}", live.address);
            Err(Failure::unknown(sentence))
        });
        let is_broken = |failure: &Failure| matches!(failure.kind, Kind::Unknown | Kind::BadToken);
        if outcome.as_ref().is_err_and(is_broken) {
            self.disconnect(live);
        } else {
            live.last_reply.record();
            self.last_reply.record();
        }
        outcome
    }

    /// Stops using this connection, and ends its watches.
    pub(super) fn disconnect(&self, live: &Connection) {
        self.connections.forget(live.id);
        live.watches.end();
    }

    /// Returns the connection, if there is one.
    pub(super) fn live(&self) -> Option<Connection> {
        let (id, live) = self.connections.live(())?;
        if live.watches.have_ended() {
            // The connection has usually ended too; no request should have to find that out.
            self.connections.forget(id);
            return None;
        }
        Some(live)
    }

    /// Returns the connection, made now if there is none.
    pub(super) async fn get(self: &Arc<Self>) -> Result<Connection, Failure> {
        if let Some(live) = self.live() {
            return Ok(live);
        }
        let connect = |attempt| {
            tokio::spawn(connect(self.clone(), attempt));
        };
        self.connections.get((), connect).await.map_err(Failure::not_sent)
    }
}

/// Connects, for all callers that wait for it.
async fn connect(slot: Arc<ConnectionSlot>, attempt: Attempt<Connection>) {
    // Each step has its own limit. This one is for a step that forgets it: all callers wait for
    // this attempt.
    let limit = slot.longest();
    let connecting = async { slot.connect(attempt.id).await.map_err(|failure| failure.error) };
    let outcome = timeout(limit, unless_panics(connecting)).await.unwrap_or_else(|_| {
        let sentence = format!("no connection to {} within {limit:?}", slot.config.address);
        Err(StoreError::new(sentence))
    });
    let outcome = outcome.map_err(StoreError::not_sent);
    slot.connections.settle((), attempt.id, &outcome);
    attempt.finish(outcome);
}

impl Connection {
    async fn unary<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Failure>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        unary(&self.channel, self.token.as_ref(), &self.address, path, request).await
    }

    /// Returns the first reply to one request of a stream. The stream of requests ends after it: a
    /// `grpc-proxy` ends a call with its requests, and then replies nothing.
    pub(super) async fn first_of<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Failure>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let (until_replied, replied) = oneshot::channel::<()>();
        let end = replied.map(|_| stream::empty()).flatten_stream();
        let requests = stream::once(ready(request)).chain(end);
        let failure = |status| Failure::from_status(&self.address, &status);
        let responses = call::stream(&self.channel, self.token.as_ref(), path, requests).await;
        let first = responses.map_err(failure)?.message().await.map_err(failure)?;
        drop(until_replied);
        first.ok_or_else(|| {
            Failure::unknown(format!("{} closed the stream without a response", self.address))
        })
    }
}
