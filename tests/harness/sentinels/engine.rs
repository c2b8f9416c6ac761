//! [`Engine`] for servers behind sentinels.

use futures_util::future::join_all;

use super::{NAME, Sentinels};
use crate::servers::{durable, left_on, wait_for_replicas};
use crate::{Engine, RedisServer, patient};

impl Engine for Sentinels {
    const NAMES_SERVERS: bool = true;

    async fn start() -> Self {
        let sentinels = Self::builder().servers(durable()).start().await;
        wait_for_replicas(sentinels.master().await, sentinels.servers.len() - 1).await;
        sentinels
    }

    /// The sentinels come first.
    fn addrs(&self) -> Vec<String> {
        self.all().map(RedisServer::addr).collect()
    }

    fn url_at(&self, addrs: &[String]) -> String {
        patient(&format!("redis+sentinel://{}/{NAME}", addrs[..self.sentinels.len()].join(",")))
    }

    async fn left(&self) -> Vec<String> {
        left_on(self).await
    }

    async fn restart(&self) {
        self.all().for_each(RedisServer::kill);
        join_all(self.all().map(RedisServer::revive)).await;
        self.settled().await;
    }

    fn freeze(&self) {
        self.all().for_each(RedisServer::stop_signal);
    }

    fn thaw(&self) {
        self.all().for_each(RedisServer::continue_signal);
    }
}

impl Sentinels {
    fn all(&self) -> impl Iterator<Item = &RedisServer> {
        self.sentinels.iter().chain(&self.servers)
    }
}
