//! A watchdog that extends the key, even if another client holds the lock by then.

use redis::RedisResult;
use tokio::time::Instant;

use super::server::{Lease, Server, Visit, reply};
use super::{Algorithm, Answer};

pub(super) struct BlindWatchdog {
    server: Server,
    lease: Lease,
    ttl: String,
    token: String,
}

impl BlindWatchdog {
    pub(super) async fn new(visit: &Visit) -> RedisResult<Self> {
        let (server, lease) = (visit.server().await?, Lease::of(visit));
        let ttl = visit.ttl.as_millis().to_string();
        Ok(Self { server, lease, ttl, token: format!("process-{}", visit.process) })
    }
}

impl Algorithm for BlindWatchdog {
    async fn acquire(&mut self, _: u32) -> Answer {
        let started = Instant::now();
        let done = self.server.set_nx_px(&self.token).await?;
        if done {
            self.lease.from(started);
        }
        reply(done)
    }

    /// One renewal by the watchdog.
    async fn renew(&mut self, _: u32) -> Answer {
        let (asked, key) = (Instant::now(), self.server.key.clone());
        let done = self.server.query(&["PEXPIRE", &key, &self.ttl]).await?;
        if done {
            self.lease.from(asked);
        }
        reply(done)
    }

    async fn release(&mut self, _: u32) -> Answer {
        self.lease.end();
        reply(self.server.compare_and_delete(&self.token).await?)
    }

    fn check(&self, _: u32) -> bool {
        self.lease.is_valid()
    }
}
