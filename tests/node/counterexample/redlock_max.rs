//! Redlock, with the greatest counter of a majority as the fencing token.

use std::time::Duration;

use redis::RedisResult;
use tokio::time::Instant;

use super::server::{Lease, Server, Visit, reply};
use super::{Algorithm, Answer, Reply};

/// Each node counts the locks that it has granted.
const ACQUIRE: &str = "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then \
                       return redis.call('incr', KEYS[2]) end return 0";

pub(super) struct RedlockMax {
    addrs: Vec<String>,
    key: String,
    ttl: Duration,
    lease: Lease,
    process: u32,
    attempts: u32,
}

impl RedlockMax {
    pub(super) fn new(visit: &Visit) -> Self {
        let (addrs, key, ttl) = (visit.addrs.clone(), visit.key.clone(), visit.ttl);
        Self { addrs, key, ttl, lease: Lease::of(visit), process: visit.process, attempts: 0 }
    }

    fn token(&self) -> String {
        format!("{}-{}", self.process, self.attempts)
    }

    fn majority(&self) -> usize {
        self.addrs.len() / 2 + 1
    }

    async fn counted(&self, addr: &str) -> RedisResult<u64> {
        let mut server = Server::at(addr, &self.key, self.ttl).await?;
        server.run(ACQUIRE, &format!("fence:{}", self.key), &self.token()).await
    }

    async fn release_on(&self, addr: &str) -> RedisResult<bool> {
        let mut server = Server::at(addr, &self.key, self.ttl).await?;
        server.compare_and_delete(&self.token()).await
    }

    /// The number of nodes that had the lock.
    async fn release_on_all(&self) -> usize {
        let mut done = 0;
        for addr in &self.addrs {
            done += usize::from(self.release_on(addr).await.unwrap_or(false));
        }
        done
    }
}

impl Algorithm for RedlockMax {
    async fn acquire(&mut self, _: u32) -> Answer {
        self.attempts += 1;
        let started = Instant::now();
        let mut counts = Vec::new();
        for addr in &self.addrs {
            counts.extend(self.counted(addr).await.ok().filter(|count| *count > 0));
        }
        if counts.len() < self.majority() {
            self.release_on_all().await;
            return reply(false);
        }
        self.lease.from(started);
        Ok(Reply::Yes(counts.into_iter().max()))
    }

    async fn release(&mut self, _: u32) -> Answer {
        self.lease.end();
        reply(self.release_on_all().await >= self.majority())
    }

    fn check(&self, _: u32) -> bool {
        self.lease.is_valid()
    }
}
