//! [`Engine`] for a single Redis server.

use super::RedisServer;
use crate::{Engine, patient};

impl Engine for RedisServer {
    /// Uses an append-only file, because leases must survive a restart. Written data survives
    /// `kill -9` without fsync, so no engine calls fsync here.
    async fn start() -> Self {
        Self::builder().appendonly().line("appendfsync no").start().await
    }

    fn addrs(&self) -> Vec<String> {
        vec![self.addr()]
    }

    fn url_at(&self, addrs: &[String]) -> String {
        patient(&format!("redis://{}{}/", self.login(), addrs.join(",")))
    }

    async fn restart(&self) {
        self.kill();
        self.revive().await;
    }

    fn freeze(&self) {
        self.stop_signal();
    }

    fn thaw(&self) {
        self.continue_signal();
    }

    async fn left(&self) -> Vec<String> {
        let cli = self.cli().await;
        let mut left = Vec::new();
        for key in cli.keys("*").await {
            if !key.contains("fence") {
                // The shared holders of a lock, or its waiters: one line for each.
                match cli.try_query::<Vec<String>>(&["ZRANGE", &key, "0", "-1"]).await {
                    Ok(several) => {
                        left.extend(several.iter().map(|one| format!("{key} has {one}")));
                    }
                    Err(_) => left.push(format!("{key} = {}", cli.describe(&key).await)),
                }
            }
        }
        left
    }
}
