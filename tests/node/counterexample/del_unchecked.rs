//! `SET NX PX`, and `DEL` in the `finally`, even if another client holds the lock by then.

use redis::RedisResult;
use tokio::time::Instant;

use super::server::{Lease, Server, Visit, reply};
use super::{Algorithm, Answer};

pub(super) struct DelUnchecked {
    server: Server,
    lease: Lease,
}

impl DelUnchecked {
    pub(super) async fn new(visit: &Visit) -> RedisResult<Self> {
        Ok(Self { server: visit.server().await?, lease: Lease::of(visit) })
    }
}

impl Algorithm for DelUnchecked {
    async fn acquire(&mut self, _: u32) -> Answer {
        let started = Instant::now();
        let done = self.server.set_nx_px("1").await?;
        if done {
            self.lease.from(started);
        }
        reply(done)
    }

    async fn release(&mut self, _: u32) -> Answer {
        let key = self.server.key.clone();
        self.lease.end();
        reply(self.server.query(&["DEL", &key]).await?)
    }

    fn check(&self, _: u32) -> bool {
        self.lease.is_valid()
    }
}
