//! lockattr, through its public API, with the same orders.

use std::collections::HashMap;
use std::time::Duration;

use lockattr::{Error, LockGuard, LockManager, LockOptions};
use lockattr_tests::with_query;

use super::server::{Visit, reply};
use super::{Algorithm, Answer, Reply};

pub(super) struct Ours {
    manager: LockManager,
    key: String,
    ttl: Duration,
    held: HashMap<u32, LockGuard>,
}

impl Ours {
    pub(super) fn new(visit: &Visit) -> Result<Self, Error> {
        let addrs = visit.addrs.join(",");
        let url = match visit.addrs.len() {
            1 => format!("redis://{addrs}"),
            // No server of a counterexample restarts, so there is no restart to wait out.
            _ => format!("redlock://{addrs}?durable=true"),
        };
        let url = with_query(&url, "connect_timeout=60s&response_timeout=60s");
        let manager = LockManager::builder().url(url).ttl(visit.ttl).build()?;
        Ok(Self { manager, key: visit.key.clone(), ttl: visit.ttl, held: HashMap::new() })
    }
}

/// A loss is an answer. Any other error leaves the outcome unknown.
fn unless_lost(done: Result<(), Error>) -> Answer {
    match done {
        Ok(()) => reply(true),
        Err(Error::Lost { .. }) => reply(false),
        Err(error) => Err(error.into()),
    }
}

impl Algorithm for Ours {
    async fn acquire(&mut self, chain: u32) -> Answer {
        match self.manager.try_acquire(&self.key, LockOptions::new()).await? {
            Some(guard) => {
                let fence = guard.fencing_token().get();
                self.held.insert(chain, guard);
                Ok(Reply::Yes(Some(fence)))
            }
            None => reply(false),
        }
    }

    async fn release(&mut self, chain: u32) -> Answer {
        match self.held.remove(&chain) {
            Some(guard) => unless_lost(guard.release().await),
            None => reply(false),
        }
    }

    async fn renew(&mut self, chain: u32) -> Answer {
        match self.held.get(&chain) {
            Some(guard) => unless_lost(guard.extend(self.ttl).await),
            None => reply(false),
        }
    }

    fn check(&self, chain: u32) -> bool {
        self.held.get(&chain).is_some_and(|guard| guard.ensure_held().is_ok())
    }
}
