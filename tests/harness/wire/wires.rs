//! All ways from one process to an engine.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::Wire;
use super::alias::Alias;
use crate::Engine;
use crate::engine::with_query;
use crate::eventually::Patience;

/// Longer than any server on this machine takes to answer.
const QUIET: Duration = Duration::from_millis(200);

/// All ways to an engine, which fail together: the network of one process.
#[derive(Debug)]
pub struct Wires {
    wires: Vec<Wire>,
    url: String,
}

impl Wires {
    /// A wire in front of each of its servers.
    pub async fn before<E: Engine>(engine: &E) -> Self {
        let (addrs, alias) = (engine.addrs().into_iter(), E::NAMES_SERVERS.then(Alias::next));
        let wires = match alias {
            Some(alias) => join_all(addrs.map(|addr| Wire::start_at(alias, addr))).await,
            None => join_all(addrs.map(Wire::start)).await,
        };
        let addrs: Vec<String> = wires.iter().map(Wire::addr).collect();
        Self { url: engine.url_at(&addrs), wires }
    }

    /// The engine's URL, over these wires.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// The same with more settings, `name=value&…`.
    pub fn url_with(&self, query: &str) -> String {
        with_query(&self.url, query)
    }

    /// Each of them.
    pub fn each(&self) -> &[Wire] {
        &self.wires
    }

    /// [`Wire::pass`] on all.
    pub async fn pass(&self) {
        join_all(self.wires.iter().map(Wire::pass)).await;
    }

    /// [`Wire::cut`] on all.
    pub async fn cut(&self) {
        join_all(self.wires.iter().map(Wire::cut)).await;
    }

    /// [`Wire::hold`] on all.
    pub fn hold(&self) {
        self.wires.iter().for_each(Wire::hold);
    }

    /// [`Wire::hold_replies`] on all.
    pub fn hold_replies(&self) {
        self.wires.iter().for_each(Wire::hold_replies);
    }

    /// [`Wire::swallow`] on all.
    pub fn swallow(&self) {
        self.wires.iter().for_each(Wire::swallow);
    }

    /// [`Wire::swallow_replies`] on all.
    pub fn swallow_replies(&self) {
        self.wires.iter().for_each(Wire::swallow_replies);
    }

    /// [`Wire::delay`] on all.
    pub fn delay(&self, delay: Duration) {
        self.wires.iter().for_each(|wire| wire.delay(delay));
    }

    /// How many bytes have come, from either side, over all of them.
    pub fn came(&self) -> u64 {
        self.wires.iter().map(Wire::came).sum()
    }

    /// Waits until something has come that had not when `before` did, and then no more for a while:
    /// the caller over them has been answered, as far as one can see from here. Who sends
    /// heartbeats is not waited for longer than `limit`.
    pub async fn settled(&self, before: u64, limit: Duration) {
        let mut patience = Patience::new(limit);
        let (mut last, mut since) = (before, Instant::now());
        while last == before || since.elapsed() < QUIET {
            if self.came() != last {
                (last, since) = (self.came(), Instant::now());
            }
            if !patience.pause().await {
                return;
            }
        }
    }
}
