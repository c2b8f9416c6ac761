//! Failovers of a cluster, and waiting until it is stable again.

use super::view::View;
use super::{Cluster, MASTERS};
use crate::RedisServer;
use crate::eventually::{Backoff, HUNG};

impl Cluster {
    /// Makes a replica take over from the healthy master of this slot, and returns the new master.
    ///
    /// # Panics
    ///
    /// If there is no replica, or as [`failed_over`](Self::failed_over) does.
    pub async fn switch_over(&self, slot: u16) -> &RedisServer {
        let old = self.master_of(slot).await;
        let replica = self.replica_of(slot).await.expect("a replica that is up");
        replica.cli().await.query::<()>(&["CLUSTER", "FAILOVER"]).await;
        self.failed_over(old).await;
        replica
    }

    /// Waits until every node that is up knows that the slots of `old` have another master, and
    /// serves.
    ///
    /// # Panics
    ///
    /// If that takes longer than thirty seconds.
    pub async fn failed_over(&self, old: &RedisServer) {
        let id = self.id_of(old);
        self.wait_for_views("a failover", |view| view.is_ok() && !view.has_slots(id)).await;
    }

    /// Waits until the cluster is stable: every node knows all others and sees all slots served,
    /// and every replica has all of its master's data.
    ///
    /// # Panics
    ///
    /// If that takes longer than thirty seconds, for instance because a node is down.
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
