//! Reentrancy by a field of the lock object, which counts the acquisitions and ignores the caller.

use redis::RedisResult;
use tokio::time::Instant;

use super::server::{Lease, Server, Visit, reply};
use super::{Algorithm, Answer};

pub(super) struct CountField {
    server: Server,
    lease: Lease,
    token: String,
    count: u32,
}

impl CountField {
    pub(super) async fn new(visit: &Visit) -> RedisResult<Self> {
        let (server, lease) = (visit.server().await?, Lease::of(visit));
        Ok(Self { server, lease, token: format!("process-{}", visit.process), count: 0 })
    }
}

impl Algorithm for CountField {
    async fn acquire(&mut self, _: u32) -> Answer {
        if self.count > 0 {
            self.count += 1;
            return reply(true);
        }
        let started = Instant::now();
        let done = self.server.set_nx_px(&self.token).await?;
        if done {
            self.count = 1;
            self.lease.from(started);
        }
        reply(done)
    }

    async fn release(&mut self, _: u32) -> Answer {
        self.count = self.count.saturating_sub(1);
        if self.count > 0 {
            return reply(true);
        }
        self.lease.end();
        reply(self.server.compare_and_delete(&self.token).await?)
    }

    fn check(&self, _: u32) -> bool {
        self.count > 0 && self.lease.is_valid()
    }
}
