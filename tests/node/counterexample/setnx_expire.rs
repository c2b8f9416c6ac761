//! `SETNX`, and then `EXPIRE`: two commands to set the lock and its end.

use redis::RedisResult;
use tokio::time::Instant;

use super::server::{Lease, Server, Visit, reply};
use super::{Algorithm, Answer};

pub(super) struct SetnxExpire {
    server: Server,
    seconds: String,
    lease: Lease,
}

impl SetnxExpire {
    pub(super) async fn new(visit: &Visit) -> RedisResult<Self> {
        let seconds = visit.ttl.as_secs().to_string();
        Ok(Self { server: visit.server().await?, seconds, lease: Lease::of(visit) })
    }
}

impl Algorithm for SetnxExpire {
    async fn acquire(&mut self, _: u32) -> Answer {
        let (asked, key) = (Instant::now(), self.server.key.clone());
        if !self.server.query::<bool>(&["SETNX", &key, "1"]).await? {
            return reply(false);
        }
        let () = self.server.query(&["EXPIRE", &key, &self.seconds]).await?;
        self.lease.from(asked);
        reply(true)
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
