//! Failovers of a cluster, and waiting until it is stable again.

use super::view::View;
use super::{Cluster, MASTERS};
use crate::RedisServer;
use crate::eventually::{Backoff, HUNG};

/// In milliseconds.
const ONE_HOUR: &str = "3600000";

impl Cluster {
    /// Makes a replica take over from the healthy master of this slot, without losing a write, and
    /// returns the new master.
    ///
    /// This is `CLUSTER FAILOVER` without its vote: the vote gives up after five seconds, and a node
    /// votes about a master once in two node timeouts.
    ///
    /// # Panics
    ///
    /// If there is no replica, or as [`failed_over`](Self::failed_over) does.
    pub async fn switch_over(&self, slot: u16) -> &RedisServer {
        let old = self.master_of(slot).await;
        let replica = self.replica_of(slot).await.expect("a replica that is up");
        let cli = old.cli().await;
        cli.query::<()>(&["CLIENT", "PAUSE", ONE_HOUR, "WRITE"]).await;
        let written: u64 = cli.info("master_repl_offset").await.parse().unwrap();
        let mut backoff = Backoff::new();
        while replica.cli().await.info("slave_repl_offset").await.parse::<u64>().unwrap() < written
        {
            let waited = backoff.pause().await;
            assert!(waited, "{} has not all of its master's data within {HUNG:?}", replica.addr());
        }
        self.failed_over(old).await;
        cli.query::<()>(&["CLIENT", "UNPAUSE"]).await;
        replica
    }

    /// Makes the replica of `old` take over, whether `old` is up, stopped or down. Waits until every
    /// node that is up knows that the slots of `old` have another master, and serves.
    ///
    /// # Panics
    ///
    /// If there is no replica that is up, or if that takes longer than [`HUNG`](crate::HUNG).
    pub async fn failed_over(&self, old: &RedisServer) {
        let (id, mut backoff) = (self.id_of(old), Backoff::new());
        while !self.takes_over(id).await {
            assert!(
                backoff.pause().await,
                "no replica of {} takes over within {HUNG:?}",
                old.addr()
            );
        }
        self.wait_for_views("a failover", |view| view.is_ok() && !view.has_slots(id)).await;
    }

    /// Tells the replica of the node with this id to take over. Returns whether a node has its slots.
    async fn takes_over(&self, id: &str) -> bool {
        for node in &self.nodes {
            match View::query(node).await {
                Some(view) if !view.has_slots(id) => return true,
                Some(view) if view.is_replica_of(id) => {
                    // It needs no other node's consent.
                    node.try_query::<()>(&["CLUSTER", "FAILOVER", "TAKEOVER"]).await;
                }
                _ => {}
            }
        }
        false
    }

    /// Waits until the cluster is stable: every node knows all others and sees all slots served,
    /// and every replica has all of its master's data. From then on, no master is replaced because it
    /// is silent.
    ///
    /// # Panics
    ///
    /// If that takes longer than [`HUNG`](crate::HUNG), for instance because a node is down.
    pub async fn settled(&self) {
        let (nodes, masters) = (self.nodes.len(), MASTERS);
        self.wait_for_views("a stable cluster", |view| {
            view.is_ok() && view.is_whole(nodes, masters)
        })
        .await;
        let mut backoff = Backoff::new();
        for node in self.nodes.iter().filter(|node| node.is_up()) {
            while !(node.is_master().await || node.is_linked().await) {
                assert!(
                    backoff.pause().await,
                    "{} is not linked to its master within {HUNG:?}",
                    node.addr()
                );
            }
            let words = ["CONFIG", "SET", "cluster-node-timeout", ONE_HOUR];
            node.cli().await.query::<()>(&words).await;
        }
    }

    /// Waits until `condition` is true of the view of each node that is up.
    async fn wait_for_views(&self, what: &str, condition: impl Fn(&View) -> bool) {
        let mut backoff = Backoff::new();
        for node in self.nodes.iter().filter(|node| node.is_up()) {
            while !View::query(node).await.is_some_and(|view| condition(&view)) {
                let waited = backoff.pause().await;
                assert!(waited, "{} does not report {what} within {HUNG:?}", node.addr());
            }
        }
    }
}
