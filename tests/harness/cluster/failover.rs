//! Replicas that take over from masters, and peace after that.

use super::view::View;
use super::{Cluster, LIMIT, MASTERS};
use crate::RedisServer;
use crate::eventually::Patience;

impl Cluster {
    /// Has a replica take over from the master of this slot while nothing is wrong with that, and
    /// returns the new master.
    ///
    /// # Panics
    ///
    /// When there is no replica, or as [`failed_over`](Self::failed_over) does.
    pub async fn switch_over(&self, slot: u16) -> &RedisServer {
        let old = self.master_of(slot).await;
        let replica = self.replica_of(slot).await.expect("a replica that is up");
        replica.cli().await.query::<()>(&["CLUSTER", "FAILOVER"]).await;
        self.failed_over(old).await;
        replica
    }

    /// Returns once every node that is up knows that the slots of `old` have another master, and
    /// serves.
    ///
    /// # Panics
    ///
    /// When that is not so within thirty seconds.
    pub async fn failed_over(&self, old: &RedisServer) {
        let id = self.id_of(old);
        self.all_see("a failover", |view| view.is_ok() && !view.has_slots(id)).await;
    }

    /// Returns once all is as it should be: every node knows all others, serves all slots, and has
    /// all of its master's data if it is a replica.
    ///
    /// # Panics
    ///
    /// When that is not so within thirty seconds, because a node is down, for instance.
    pub async fn settled(&self) {
        let (nodes, masters) = (self.nodes.len(), MASTERS);
        self.all_see("peace", |view| view.is_ok() && view.is_whole(nodes, masters)).await;
        let mut patience = Patience::new(LIMIT);
        for node in self.nodes.iter().filter(|node| node.is_up()) {
            while !(node.is_master().await || node.is_linked().await) {
                assert!(patience.pause().await, "{} has no link to its master", node.addr());
            }
        }
    }

    /// Waits until what each node tells is as wished.
    async fn all_see(&self, what: &str, wished: impl Fn(&View) -> bool) {
        let mut patience = Patience::new(LIMIT);
        for node in self.nodes.iter().filter(|node| node.is_up()) {
            while !View::of(node).await.is_some_and(|view| wished(&view)) {
                let waited = patience.pause().await;
                assert!(waited, "{} sees no sign of {what} within {LIMIT:?}", node.addr());
            }
        }
    }
}
