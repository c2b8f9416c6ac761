//! Whether a reply counts if its server dies: how many replicas have what it reports.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, FromRedisValue, Pipeline, RedisResult, ServerErrorKind, Value};

use super::call::Call;
use crate::lock::server_options::ServerOptions;
use crate::store::StoreError;

/// How many replicas must have a lease before it counts, and how long they may take.
#[derive(Clone, Copy)]
pub(super) struct Replicas {
    needed: usize,
    /// Well under the response timeout: the server must give up first, or no reply would come.
    limit: Duration,
}

/// A reply, and whether it counts.
pub(super) struct ReplicatedReply<T> {
    pub(super) value: T,
    /// Whether enough replicas have the change.
    pub(super) replicated: Result<(), StoreError>,
}

impl<T> ReplicatedReply<T> {
    /// Creates a reply that needs no replica.
    pub(super) fn unreplicated(value: T) -> Self {
        Self { value, replicated: Ok(()) }
    }
}

impl Replicas {
    /// No replica is needed.
    pub(super) const NONE: Self = Self { needed: 0, limit: Duration::ZERO };

    pub(super) fn new(timing: &ServerOptions) -> Self {
        Self { needed: timing.replicas, limit: timing.response_timeout / 2 }
    }

    /// Returns whether a lease must be on any replica.
    pub(super) fn are_needed(self) -> bool {
        self.needed > 0
    }

    /// Adds the command that waits for replicas, if any is needed.
    pub(super) fn wait(self, commands: &mut Pipeline) {
        if self.are_needed() {
            let millis = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX).max(1);
            commands.cmd("WAIT").arg(self.needed).arg(millis);
        }
    }

    /// Combines a reply with the one to `WAIT`.
    pub(super) fn reply<T>(
        self,
        value: T,
        waited: Option<Value>,
    ) -> RedisResult<ReplicatedReply<T>> {
        if !self.are_needed() {
            return Ok(ReplicatedReply::unreplicated(value));
        }
        let acknowledged = usize::from_redis_value(waited.unwrap_or(Value::Nil))?;
        Ok(ReplicatedReply { value, replicated: self.check(acknowledged) })
    }

    /// Runs a script and waits until replicas have its changes, in one round trip. `asking`:
    /// another node of a cluster redirected it here, so `ASKING` precedes it.
    pub(super) async fn invoke<T: FromRedisValue>(
        self,
        connection: &mut MultiplexedConnection,
        asking: bool,
        script: &Call<'_>,
    ) -> RedisResult<ReplicatedReply<T>> {
        let mut both = redis::pipe();
        // One by one, as if each had been sent alone: the error of a pipeline has no kind.
        both.ignore_errors();
        if asking {
            both.cmd("ASKING").ignore();
        }
        both.add_command(script.command().clone());
        self.wait(&mut both);
        let mut replies: Vec<RedisResult<Value>> = both.query_async(connection).await?;
        // The client does not do this for several commands at once.
        if let Some(Err(error)) = replies.first()
            && error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
        {
            script.load(connection).await?;
            replies = both.query_async(connection).await?;
        }
        let mut replies = replies.into_iter();
        let mut next = || replies.next().unwrap_or(Ok(Value::Nil));
        let value = T::from_redis_value(next()?)?;
        let waited = if self.are_needed() { Some(next()?) } else { None };
        self.reply(value, waited)
    }

    fn check(self, acknowledged: usize) -> Result<(), StoreError> {
        let Self { needed, limit } = self;
        if acknowledged >= needed {
            return Ok(());
        }
        Err(StoreError::new(format!(
            "{acknowledged} of the {needed} replicas that `replicas` requires acknowledged the write within {limit:?}: are \
             they up?"
        )))
    }
}
