//! A real Redis cluster: three masters that share the slots, and a replica of each.

mod builder;
mod engine;
mod failover;
mod migration;
mod slot;
mod view;

use tokio::sync::OnceCell;

pub use builder::ClusterBuilder;

use crate::eventually::Backoff;
use crate::servers::hosts;
use crate::{RedisServer, Servers, patient, with_query};
use view::View;

const MASTERS: usize = 3;

/// Six servers, which are killed when this value is dropped.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<RedisServer>,
    ids: Vec<String>,
}

impl Cluster {
    /// Starts three masters with a replica each, without passwords, TLS or persistence. A replica
    /// takes over when a test asks for it: [`failed_over`](Self::failed_over). Returns once all slots
    /// are served and all replicas linked.
    ///
    /// # Panics
    ///
    /// If a server does not start, or the cluster is not ready within [`HUNG`](crate::HUNG).
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Returns a builder, for passwords, users, TLS or persistence.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::default()
    }

    /// Returns the cluster that all tests of a program share. A test that kills nodes or moves
    /// slots starts its own. The shared one ends with the program.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start) does.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Cluster> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// Returns `redis+cluster://P1,P2,P3`: the first masters, with the password if there is one.
    pub fn url(&self) -> String {
        self.url_by("redis+cluster", RedisServer::addr)
    }

    /// Returns [`url`](Self::url) with settings: `url_with("ttl=1s&prefix=test:")`.
    pub fn url_with(&self, query: &str) -> String {
        with_query(&self.url(), query)
    }

    /// Returns [`url`](Self::url) with `tls=true` and the same nodes' TLS ports.
    ///
    /// # Panics
    ///
    /// If they were built without TLS.
    pub fn tls_url(&self) -> String {
        with_query(&self.url_by("redis+cluster", RedisServer::tls_addr), "tls=true")
    }

    fn url_by(&self, scheme: &str, addr: impl Fn(&RedisServer) -> String) -> String {
        let hosts = hosts(&self.nodes[..MASTERS], addr);
        patient(&format!("{scheme}://{}{hosts}", self.nodes[0].login()))
    }

    /// Returns all nodes: the first three masters, then their replicas in the same order.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// Returns the slot of a key, or of its hash tag if it has one.
    pub fn slot_of(&self, key: &str) -> u16 {
        slot::slot_of(key)
    }

    /// Returns the master that serves this key. Waits for a failover that is under way.
    ///
    /// # Panics
    ///
    /// If no node that is up serves it within [`HUNG`](crate::HUNG).
    pub async fn node_of(&self, key: &str) -> &RedisServer {
        self.master_of(self.slot_of(key)).await
    }

    /// Returns the master that serves this slot. Waits for a failover that is under way.
    ///
    /// # Panics
    ///
    /// If no node that is up serves it within [`HUNG`](crate::HUNG).
    pub async fn master_of(&self, slot: u16) -> &RedisServer {
        let mut backoff = Backoff::new();
        loop {
            let mut newest = None;
            for node in &self.nodes {
                let own = View::query(node).await.and_then(|view| view.own_epoch_of(slot));
                newest = newest.max(own.map(|epoch| (epoch, node.addr())));
            }
            if let Some((_, addr)) = newest {
                return self.node_at(&addr);
            }
            assert!(backoff.pause().await, "no node that is up serves slot {slot}");
        }
    }

    /// Returns a replica of the master that serves this slot, if one is up.
    ///
    /// # Panics
    ///
    /// As [`master_of`](Self::master_of) does.
    pub async fn replica_of(&self, slot: u16) -> Option<&RedisServer> {
        let id = self.id_of(self.master_of(slot).await);
        for node in &self.nodes {
            if View::query(node).await.is_some_and(|view| view.is_replica_of(id)) {
                return Some(node);
            }
        }
        None
    }

    fn id_of(&self, node: &RedisServer) -> &str {
        let position = self.nodes.iter().position(|one| one.addr() == node.addr());
        &self.ids[position.expect("a node of this cluster")]
    }

    fn node_at(&self, addr: &str) -> &RedisServer {
        let node = self.nodes.iter().find(|node| node.addr() == addr);
        node.expect("a node of this cluster")
    }
}

impl Servers for Cluster {
    fn servers(&self) -> Vec<&RedisServer> {
        self.nodes.iter().collect()
    }
}
