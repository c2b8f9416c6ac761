//! [`Engine`] for a Redis cluster.

use futures_util::future::join_all;

use super::{Cluster, MASTERS};
use crate::servers::{durable, left_on};
use crate::{Engine, RedisServer, patient};

impl Engine for Cluster {
    const NAMES_SERVERS: bool = true;

    async fn start() -> Self {
        Self::builder().servers(durable()).start().await
    }

    fn addrs(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::addr).collect()
    }

    fn url_at(&self, addrs: &[String]) -> String {
        patient(&format!("redis+cluster://{}", addrs[..MASTERS].join(",")))
    }

    async fn left(&self) -> Vec<String> {
        left_on(self).await
    }

    async fn restart(&self) {
        self.nodes.iter().for_each(RedisServer::kill);
        join_all(self.nodes.iter().map(RedisServer::revive)).await;
        self.settled().await;
    }

    fn freeze(&self) {
        self.nodes.iter().for_each(RedisServer::stop_signal);
    }

    fn thaw(&self) {
        self.nodes.iter().for_each(RedisServer::continue_signal);
    }
}
