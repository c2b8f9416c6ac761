//! A real cluster: three masters that share the slots, and a replica of each.

mod builder;
mod engine;
mod failover;
mod migration;
mod slot;
mod view;

use std::time::Duration;

use tokio::sync::OnceCell;

pub use builder::ClusterBuilder;

use crate::eventually::Patience;
use crate::servers::hosts;
use crate::{RedisServer, Servers};
use view::View;

const MASTERS: usize = 3;

/// A failover takes about three seconds where nothing else is going on.
const LIMIT: Duration = Duration::from_secs(30);

/// Six servers that end with this value.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<RedisServer>,
    ids: Vec<String>,
}

impl Cluster {
    /// Three masters with a replica each, without passwords, TLS or persistence, in which a node
    /// that is silent for a second and a half is replaced. Returns once all slots are served and
    /// all replicas linked.
    ///
    /// # Panics
    ///
    /// When a server does not start, or the cluster is not ready within thirty seconds.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// For another timeout with silent nodes, passwords, users, TLS or persistence.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::default()
    }

    /// One cluster for all tests of a program that only use it: who kills nodes or moves slots
    /// starts its own. It takes a silence of five seconds for a failure, and ends with the
    /// program.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start) does.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Cluster> = OnceCell::const_new();
        let patient = Self::builder().node_timeout(Duration::from_secs(5));
        SHARED.get_or_init(|| patient.start()).await
    }

    /// `redis+cluster://P1,P2,P3`: the nodes that were the masters at first, and the password if
    /// there is one.
    pub fn url(&self) -> String {
        self.url_by("redis+cluster", RedisServer::addr)
    }

    /// [`url`](Self::url) with settings: `url_with("ttl=1s&prefix=test:")`.
    pub fn url_with(&self, query: &str) -> String {
        format!("{}?{query}", self.url())
    }

    /// [`url`](Self::url) with `tls=true`: the ports of the same nodes that speak TLS.
    ///
    /// # Panics
    ///
    /// When they were built without TLS.
    pub fn tls_url(&self) -> String {
        format!("{}?tls=true", self.url_by("redis+cluster", RedisServer::tls_addr))
    }

    fn url_by(&self, scheme: &str, addr: impl Fn(&RedisServer) -> String) -> String {
        let hosts = hosts(&self.nodes[..MASTERS], addr);
        format!("{scheme}://{}{hosts}", self.nodes[0].login())
    }

    /// All nodes; the first three were the masters at first, and the others, in order, their
    /// replicas.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The slot of a key, which is that of its hash tag if it has one.
    pub fn slot_of(&self, key: &str) -> u16 {
        slot::slot_of(key)
    }

    /// The master that serves this key; waits for a failover that is under way.
    ///
    /// # Panics
    ///
    /// When none that is up does within thirty seconds.
    pub async fn node_of(&self, key: &str) -> &RedisServer {
        self.master_of(self.slot_of(key)).await
    }

    /// The master that serves this slot; waits for a failover that is under way.
    ///
    /// # Panics
    ///
    /// When none that is up does within thirty seconds.
    pub async fn master_of(&self, slot: u16) -> &RedisServer {
        let mut patience = Patience::new(LIMIT);
        loop {
            let mut newest = None;
            for node in &self.nodes {
                let own = View::of(node).await.and_then(|view| view.own_epoch_of(slot));
                newest = newest.max(own.map(|epoch| (epoch, node.addr())));
            }
            if let Some((_, addr)) = newest {
                return self.node_at(&addr);
            }
            assert!(patience.pause().await, "nobody that is up serves slot {slot}");
        }
    }

    /// A replica of the master that serves this slot, if one is up.
    ///
    /// # Panics
    ///
    /// As [`master_of`](Self::master_of) does.
    pub async fn replica_of(&self, slot: u16) -> Option<&RedisServer> {
        let id = self.id_of(self.master_of(slot).await);
        for node in &self.nodes {
            if View::of(node).await.is_some_and(|view| view.copies(id)) {
                return Some(node);
            }
        }
        None
    }

    fn id_of(&self, node: &RedisServer) -> &str {
        let ours = self.nodes.iter().position(|one| one.addr() == node.addr());
        &self.ids[ours.expect("a node of this cluster")]
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
