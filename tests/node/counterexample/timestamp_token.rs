//! The owner token is the time of its owner's request.

use redis::RedisResult;
use tokio::time::Instant;

use super::server::{Clock, Lease, Server, Visit, reply};
use super::{Algorithm, Answer};

pub(super) struct TimestampToken {
    server: Server,
    clock: Clock,
    lease: Lease,
    token: Option<String>,
}

impl TimestampToken {
    pub(super) async fn new(visit: &Visit) -> RedisResult<Self> {
        let (server, clock, lease) = (visit.server().await?, visit.clock(), Lease::of(visit));
        Ok(Self { server, clock, lease, token: None })
    }
}

impl Algorithm for TimestampToken {
    async fn acquire(&mut self, _: u32) -> Answer {
        let started = Instant::now();
        // One token for all attempts.
        let now = self.clock.milliseconds();
        let token = self.token.get_or_insert_with(|| now.to_string());
        let done = self.server.set_nx_px(token).await?;
        if done {
            self.lease.from(started);
        }
        reply(done)
    }

    async fn release(&mut self, _: u32) -> Answer {
        self.lease.end();
        let Some(token) = self.token.take() else { return reply(false) };
        reply(self.server.compare_and_delete(&token).await?)
    }

    fn check(&self, _: u32) -> bool {
        self.lease.is_valid()
    }
}
