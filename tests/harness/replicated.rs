//! A master and its replica, for `?replicas=1`.

use crate::servers::{durable, left_on, wait_for_replicas};
use crate::{Engine, RedisServer, Servers};

/// A master whose address clients have, and a replica whose address they do not have.
#[derive(Debug)]
pub struct Replicated {
    master: RedisServer,
    replica: RedisServer,
}

impl Engine for Replicated {
    async fn start() -> Self {
        let master = durable().start().await;
        let replica = durable().replica_of(&master).start().await;
        replica.linked().await;
        wait_for_replicas(&master, 1).await;
        Self { master, replica }
    }

    fn addrs(&self) -> Vec<String> {
        self.master.addrs()
    }

    fn url_at(&self, addrs: &[String]) -> String {
        crate::with_query(&self.master.url_at(addrs), "replicas=1")
    }

    async fn left(&self) -> Vec<String> {
        left_on(self).await
    }

    async fn restart(&self) {
        self.master.restart_with_data().await;
        self.replica.linked().await;
    }

    fn freeze(&self) {
        self.master.stop_signal();
    }

    fn thaw(&self) {
        self.master.continue_signal();
    }
}

impl Replicated {
    /// Returns the master, which receives all requests.
    pub fn master(&self) -> &RedisServer {
        &self.master
    }
}

impl Servers for Replicated {
    fn servers(&self) -> Vec<&RedisServer> {
        vec![&self.master, &self.replica]
    }
}
