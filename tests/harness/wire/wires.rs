//! All wires from one process to an engine.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, timeout};

use super::Wire;
use super::alias::Alias;
use crate::Engine;
use crate::engine::with_query;
use crate::eventually::Backoff;

/// Longer than any server on this machine takes to respond.
const QUIET: Duration = Duration::from_millis(200);

/// All wires to an engine, which fail together: the network of one process.
#[derive(Debug)]
pub struct Wires {
    wires: Vec<Wire>,
    url: String,
}

impl Wires {
    /// Starts a wire in front of each of the engine's servers.
    pub async fn before<E: Engine>(engine: &E) -> Self {
        let (addrs, alias) = (engine.addrs().into_iter(), E::NAMES_SERVERS.then(Alias::next));
        let wires = match alias {
            Some(alias) => join_all(addrs.map(|addr| Wire::start_at(alias, addr))).await,
            None => join_all(addrs.map(Wire::start)).await,
        };
        let addrs: Vec<String> = wires.iter().map(Wire::addr).collect();
        Self { url: engine.url_at(&addrs), wires }
    }

    /// Returns the engine's URL over these wires.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Returns the same URL with more settings, `name=value&…`.
    pub fn url_with(&self, query: &str) -> String {
        with_query(&self.url, query)
    }

    /// Returns the wires.
    pub fn each(&self) -> &[Wire] {
        &self.wires
    }

    /// Calls [`Wire::pass`] on all.
    pub async fn pass(&self) {
        join_all(self.wires.iter().map(Wire::pass)).await;
    }

    /// Calls [`Wire::cut`] on all.
    pub async fn cut(&self) {
        join_all(self.wires.iter().map(Wire::cut)).await;
    }

    /// Calls [`Wire::hold`] on all.
    pub fn hold(&self) {
        self.wires.iter().for_each(Wire::hold);
    }

    /// Calls [`Wire::hold_replies`] on all.
    pub fn hold_replies(&self) {
        self.wires.iter().for_each(Wire::hold_replies);
    }

    /// Calls [`Wire::swallow`] on all.
    pub fn swallow(&self) {
        self.wires.iter().for_each(Wire::swallow);
    }

    /// Calls [`Wire::swallow_replies`] on all.
    pub fn swallow_replies(&self) {
        self.wires.iter().for_each(Wire::swallow_replies);
    }

    /// Calls [`Wire::delay`] on all.
    pub fn delay(&self, delay: Duration) {
        self.wires.iter().for_each(|wire| wire.delay(delay));
    }

    /// Calls [`Wire::carry`] on all.
    pub fn carry(&self, bytes_per_second: u32) {
        self.wires.iter().for_each(|wire| wire.carry(bytes_per_second));
    }

    /// Returns the number of bytes received from either side, over all wires.
    pub fn came(&self) -> u64 {
        self.wires.iter().map(Wire::came).sum()
    }

    /// Waits until [`came`](Self::came) exceeds `before` and then stays unchanged for a while: the
    /// caller has probably received its reply. Waits at most `limit`: heartbeats never stop.
    pub async fn settled(&self, before: u64, limit: Duration) {
        let settles = async {
            let mut backoff = Backoff::new();
            let (mut last, mut since) = (before, Instant::now());
            while last == before || since.elapsed() < QUIET {
                if self.came() != last {
                    (last, since) = (self.came(), Instant::now());
                }
                backoff.pause().await;
            }
        };
        let _heartbeats_go_on = timeout(limit, settles).await;
    }
}
