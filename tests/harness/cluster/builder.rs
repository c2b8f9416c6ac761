//! Joins six servers into a cluster, with the commands of `redis-cli --cluster create`, but sent to
//! all nodes at once.

use super::slot::SLOTS;
use super::{Cluster, MASTERS, View};
use crate::authority::Authority;
use crate::eventually::{Backoff, HUNG};
use crate::{RedisServer, RedisServerBuilder};

/// Within half of so many milliseconds, nodes that have just started exchange what they know.
const NODE_TIMEOUT: &str = "1500";

/// A builder for a [`Cluster`].
#[derive(Debug, Clone)]
#[must_use = "a builder starts nothing before `start()`"]
pub struct ClusterBuilder {
    node: RedisServerBuilder,
    tls: bool,
}

impl Default for ClusterBuilder {
    fn default() -> Self {
        Self { node: RedisServer::builder(), tls: false }
    }
}

impl ClusterBuilder {
    /// Sets the settings of each node: `servers(RedisServer::builder().password("secret"))`.
    pub fn servers(mut self, node: RedisServerBuilder) -> Self {
        self.node = node;
        self
    }

    /// Uses TLS on all nodes and between them, under one authority.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Starts all nodes and returns once they are ready.
    ///
    /// # Panics
    ///
    /// As [`Cluster::start`] does.
    pub async fn start(mut self) -> Cluster {
        if self.tls {
            self.node = self.node.tls_among_servers(&Authority::generate());
        }
        let node = self
            .node
            .cluster_enabled()
            .line(&format!("cluster-node-timeout {NODE_TIMEOUT}"))
            // The only replica must take over, however old its data is.
            .line("cluster-replica-validity-factor 0")
            // A replica must not move to a master that has lost its own replica.
            .line("cluster-allow-replica-migration no");
        let nodes = RedisServerBuilder::start_all(vec![node; 2 * MASTERS]).await;
        let mut ids = Vec::new();
        for (number, node) in nodes.iter().enumerate() {
            ids.push(introduce(node, number, &nodes[..number]).await);
        }
        for (replica, master) in nodes[MASTERS..].iter().zip(&ids) {
            follow(replica, master).await;
        }
        let cluster = Cluster { nodes, ids };
        cluster.settled().await;
        cluster
    }
}

/// Sets a new node's epoch and slots, introduces it to the nodes before it, and returns its id.
async fn introduce(node: &RedisServer, number: usize, before: &[RedisServer]) -> String {
    let cli = node.cli().await;
    // Otherwise all nodes start with the same epoch and resolve the conflicts one by one. This
    // command only works while the node knows no other node.
    cli.query::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]).await;
    if number < MASTERS {
        let share = |number: usize| usize::from(SLOTS) * number / MASTERS;
        let (first, last) = (share(number).to_string(), (share(number + 1) - 1).to_string());
        cli.query::<()>(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]).await;
    }
    // Every node meets every other: gossip takes seconds.
    for other in before {
        let (port, bus_port) = (other.peer_port().to_string(), other.bus_port().to_string());
        cli.query::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus_port]).await;
    }
    cli.query(&["CLUSTER", "MYID"]).await
}

/// Makes a node a replica once it has met its master.
async fn follow(replica: &RedisServer, master: &str) {
    let mut backoff = Backoff::new();
    while !View::query(replica).await.is_some_and(|view| view.knows(master)) {
        assert!(backoff.pause().await, "{} has not met its master within {HUNG:?}", replica.addr());
    }
    replica.cli().await.query::<()>(&["CLUSTER", "REPLICATE", master]).await;
}
