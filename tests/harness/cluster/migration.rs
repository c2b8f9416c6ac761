//! Slots on their way from one node to another, as a cluster that grows moves them.

use super::Cluster;
use crate::RedisServer;

impl Cluster {
    /// Moves a slot with all its keys: [`begin_migration`](Self::begin_migration),
    /// [`move_keys`](Self::move_keys), [`end_migration`](Self::end_migration).
    ///
    /// # Panics
    ///
    /// When `to` is not a master, or has the slot already.
    pub async fn migrate_slot(&self, slot: u16, to: &RedisServer) {
        let from = self.begin_migration(slot, to).await;
        self.move_keys(slot, from, to).await;
        self.end_migration(slot, from, to).await;
    }

    /// From now on the old node, which is returned, answers `ASK` for keys of the slot that it does
    /// not have, and the new one serves those who are sent so.
    ///
    /// # Panics
    ///
    /// When `to` is not a master, or has the slot already.
    pub async fn begin_migration(&self, slot: u16, to: &RedisServer) -> &RedisServer {
        let from = self.master_of(slot).await;
        // In this order, so that no process is sent to a node that does not expect him.
        self.set_slot(to, slot, &["IMPORTING", self.id_of(from)]).await;
        self.set_slot(from, slot, &["MIGRATING", self.id_of(to)]).await;
        from
    }

    /// Moves the keys that the slot has now, with their time left, and says how many.
    ///
    /// # Panics
    ///
    /// When the migration was not begun.
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

    /// From now on the slot is the new node's, and the old one answers `MOVED`. Returns once all
    /// masters know.
    ///
    /// # Panics
    ///
    /// When the old node still has keys of the slot.
    pub async fn end_migration(&self, slot: u16, from: &RedisServer, to: &RedisServer) {
        let owner = ["NODE", self.id_of(to)];
        // In this order, so that no moment has the slot with no process.
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
