//! [`Engine`] for independent servers under Redlock.

use futures_util::future::join_all;

use super::Independents;
use crate::servers::{durable, left_on};
use crate::{Engine, RedisServer, patient};

impl Engine for Independents {
    async fn start() -> Self {
        Self::builder().servers(durable()).start().await
    }

    fn addrs(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::addr).collect()
    }

    /// Uses `durable=true`: otherwise a server that has just started grants nothing for a minute,
    /// because it may have forgotten its locks.
    fn url_at(&self, addrs: &[String]) -> String {
        patient(&format!("redlock://{}?durable=true", addrs.join(",")))
    }

    async fn left(&self) -> Vec<String> {
        left_on(self).await
    }

    async fn restart(&self) {
        self.nodes.iter().for_each(RedisServer::kill);
        join_all(self.nodes.iter().map(RedisServer::revive)).await;
    }

    fn freeze(&self) {
        self.nodes.iter().for_each(RedisServer::stop_signal);
    }

    fn thaw(&self) {
        self.nodes.iter().for_each(RedisServer::continue_signal);
    }
}
