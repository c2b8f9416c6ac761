//! The value is the end of the lease by its client's clock; a client that finds it in the past
//! takes over by `GETSET`.

use redis::RedisResult;

use super::server::{Clock, Server, Visit, reply};
use super::{Algorithm, Answer};

pub(super) struct Getset {
    server: Server,
    clock: Clock,
    ttl: i64,
    /// The value that it wrote as the holder.
    ours: Option<i64>,
}

impl Getset {
    pub(super) async fn new(visit: &Visit) -> RedisResult<Self> {
        let ttl = i64::try_from(visit.ttl.as_millis()).unwrap_or(i64::MAX);
        Ok(Self { server: visit.server().await?, clock: visit.clock(), ttl, ours: None })
    }

    async fn taken(&mut self, ends: i64) -> RedisResult<bool> {
        let (key, ours) = (self.server.key.clone(), ends.to_string());
        if self.server.query(&["SETNX", &key, &ours]).await? {
            return Ok(true);
        }
        let seen: Option<i64> = self.server.query(&["GET", &key]).await?;
        if seen.is_none_or(|seen| seen >= self.clock.milliseconds()) {
            return Ok(false);
        }
        let before: Option<i64> = self.server.query(&["GETSET", &key, &ours]).await?;
        // If another client was quicker, this client has overwritten its value.
        Ok(before == seen)
    }
}

impl Algorithm for Getset {
    async fn acquire(&mut self, _: u32) -> Answer {
        let ends = self.clock.milliseconds() + self.ttl + 1;
        let done = self.taken(ends).await?;
        if done {
            self.ours = Some(ends);
        }
        reply(done)
    }

    async fn release(&mut self, _: u32) -> Answer {
        let Some(ours) = self.ours.take() else { return reply(false) };
        let key = self.server.key.clone();
        let value: Option<i64> = self.server.query(&["GET", &key]).await?;
        if value != Some(ours) {
            return reply(false);
        }
        reply(self.server.query(&["DEL", &key]).await?)
    }

    fn check(&self, _: u32) -> bool {
        self.ours.is_some_and(|ends| self.clock.milliseconds() < ends)
    }
}
