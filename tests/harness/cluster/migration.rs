//! Moves slots between nodes, step by step, as resharding does.

use super::Cluster;
use crate::RedisServer;

impl Cluster {
    /// Moves a slot with all its keys: [`begin_migration`](Self::begin_migration),
    /// [`move_keys`](Self::move_keys), [`end_migration`](Self::end_migration).
    ///
    /// # Panics
    ///
    /// If `to` is not a master, or has the slot already.
    pub async fn migrate_slot(&self, slot: u16, to: &RedisServer) {
        let from = self.begin_migration(slot, to).await;
        self.move_keys(slot, from, to).await;
        self.end_migration(slot, from, to).await;
    }

    /// Starts to move a slot and returns the old node. That node now replies `ASK` for the slot's
    /// keys that it does not have, and the new node serves the redirected clients.
    ///
    /// # Panics
    ///
    /// If `to` is not a master, or has the slot already.
    pub async fn begin_migration(&self, slot: u16, to: &RedisServer) -> &RedisServer {
        let from = self.master_of(slot).await;
        // In this order, so that no client is redirected to a node that does not import the slot.
        self.set_slot(to, slot, &["IMPORTING", self.id_of(from)]).await;
        self.set_slot(from, slot, &["MIGRATING", self.id_of(to)]).await;
        from
    }

    /// Moves the keys that the slot has now, with their remaining TTLs, and returns their count.
    ///
    /// # Panics
    ///
    /// If the migration was not begun.
    pub async fn move_keys(&self, slot: u16, from: &RedisServer, to: &RedisServer) -> usize {
        let cli = from.cli().await;
        let words = ["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), "100000"];
        let keys: Vec<String> = cli.query(&words).await;
        if keys.is_empty() {
            return 0;
        }
        let port = to.peer_port().to_string();
        let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000"];
        words.extend(to.password().map(|password| ["AUTH", password]).into_iter().flatten());
        words.push("KEYS");
        words.extend(keys.iter().map(String::as_str));
        cli.query::<()>(&words).await;
        keys.len()
    }

    /// Assigns the slot to the new node; the old one then replies `MOVED`. Returns once all masters
    /// know.
    ///
    /// # Panics
    ///
    /// If the old node still has keys of the slot.
    pub async fn end_migration(&self, slot: u16, from: &RedisServer, to: &RedisServer) {
        let owner = ["NODE", self.id_of(to)];
        // In this order, so that the slot always has an owner.
        self.set_slot(to, slot, &owner).await;
        self.set_slot(from, slot, &owner).await;
        for node in self.nodes.iter().filter(|node| node.is_up()) {
            if node.is_master().await {
                self.set_slot(node, slot, &owner).await;
            }
        }
    }

    async fn set_slot(&self, node: &RedisServer, slot: u16, state: &[&str]) {
        let slot = slot.to_string();
        let words = ["CLUSTER", "SETSLOT", &slot].into_iter().chain(state.iter().copied());
        node.cli().await.query::<()>(&words.collect::<Vec<_>>()).await;
    }
}
