//! The connection, of which there is one at a time: replaced when it falls silent.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prost::Message;
use tokio::time::{Instant, timeout};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;

use super::call::{stream, unary};
use super::config::Config;
use super::failure::{Failure, Kind};
use super::watches::Watches;
use crate::store::StoreError;
use crate::store::last_answer::LastAnswer;

/// How long a failure to connect is told to those who ask next, before it is tried again.
const FAILURE_CACHED_FOR: Duration = Duration::from_millis(50);

/// The way to the servers, of which there is one at a time. Lives on the store's own runtime.
pub(super) struct ConnectionSlot {
    pub(super) config: Config,
    live: Mutex<Option<Connection>>,
    connecting: tokio::sync::Mutex<Option<(Instant, StoreError)>>,
    pub(super) last_id: AtomicU64,
    pub(super) answered: LastAnswer,
}

/// A connection that is thought to work.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) id: u64,
    /// The member at its other end, for errors.
    pub(super) address: Arc<str>,
    pub(super) channel: Channel,
    /// What proves who we are.
    pub(super) token: Option<MetadataValue<Ascii>>,
    pub(super) watches: Arc<Watches>,
}

impl ConnectionSlot {
    pub(super) fn new(config: Config) -> Self {
        let (live, connecting, last_id) = Default::default();
        Self { config, live, connecting, last_id, answered: LastAnswer::new() }
    }

    /// Asks, and waits for the answer for `response_timeout`. Who drops this does not know what
    /// became of the request.
    pub(super) async fn ask<Q, A>(&self, path: &'static str, request: &Q) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let live = self.get().await?;
        match self.ask_on(&live, path, request).await {
            // It was not executed, so it is safe to ask again.
            Err(failure) if failure.kind == Kind::BadToken && self.config.login.is_some() => {
                let live = self.get().await?;
                self.ask_on(&live, path, request).await
            }
            outcome => outcome,
        }
    }

    /// The same, of the member at the end of this connection.
    pub(super) async fn ask_on<Q, A>(
        &self,
        live: &Connection,
        path: &'static str,
        request: &Q,
    ) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        self.in_time(live, live.unary(path, request.clone())).await
    }

    /// The outcome of what a member was asked; silence ends the connection.
    pub(super) async fn in_time<A>(
        &self,
        live: &Connection,
        asked: impl Future<Output = Result<A, Failure>>,
    ) -> Result<A, Failure> {
        let limit = self.config.timing.response_timeout;
        let outcome = timeout(limit, asked).await.unwrap_or_else(|_| {
            let sentence = format!("no answer from {} within {limit:?}", live.address);
            Err(Failure::unknown(sentence))
        });
        let over = |failure: &Failure| matches!(failure.kind, Kind::Unknown | Kind::BadToken);
        if outcome.as_ref().is_err_and(over) {
            self.leave(live);
        } else {
            self.answered.now();
        }
        outcome
    }

    /// Uses this connection no more. Nobody hears on it what is watched for.
    pub(super) fn leave(&self, live: &Connection) {
        let mut current = self.live();
        if current.as_ref().is_some_and(|current| current.id == live.id) {
            *current = None;
        }
        drop(current);
        live.watches.end();
    }

    /// The connection, made now if there is none.
    pub(super) async fn get(&self) -> Result<Connection, Failure> {
        if let Some(live) = self.usable() {
            return Ok(live);
        }
        let mut failed = self.connecting.lock().await;
        if let Some(live) = self.usable() {
            return Ok(live);
        }
        if let Some((at, error)) = &*failed
            && at.elapsed() < FAILURE_CACHED_FOR
        {
            return Err(Failure::not_sent(error.clone()));
        }
        match self.connect().await {
            Ok(live) => Ok(self.live().insert(live).clone()),
            Err(failure) => {
                *failed = Some((Instant::now(), failure.error.clone()));
                Err(Failure::not_sent(failure.error))
            }
        }
    }

    /// A connection whose watches have ended has ended itself, as a rule; no question is to find out.
    fn usable(&self) -> Option<Connection> {
        self.live().clone().filter(|live| !live.watches.have_ended())
    }

    fn live(&self) -> MutexGuard<'_, Option<Connection>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    async fn unary<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Failure>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        unary(&self.channel, self.token.as_ref(), &self.address, path, request).await
    }

    /// The first answer to one request of a stream.
    pub(super) async fn first_of<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Failure>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let asked = futures_util::stream::iter([request]);
        let said = |status| Failure::from_status(&self.address, &status);
        let answers = stream(&self.channel, self.token.as_ref(), path, asked).await;
        let first = answers.map_err(said)?.message().await.map_err(said)?;
        first.ok_or_else(|| Failure::unknown(format!("{} hung up", self.address)))
    }
}
