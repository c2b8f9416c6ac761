//! Queries a server's replication role and state.

use super::RedisServer;
use crate::eventually::{Backoff, HUNG};

impl RedisServer {
    /// Waits until it is a replica that has all of its master's data and receives new writes.
    ///
    /// # Panics
    ///
    /// If it is not within [`HUNG`](crate::HUNG).
    pub async fn linked(&self) {
        let mut backoff = Backoff::new();
        while !self.is_linked().await {
            assert!(
                backoff.pause().await,
                "{} is not linked to its master within {HUNG:?}",
                self.addr()
            );
        }
    }

    /// Returns whether it responds, as a replica that has all of its master's data.
    pub(crate) async fn is_linked(&self) -> bool {
        self.replication_info_has(&["role:slave", "master_link_status:up"]).await
    }

    /// Returns whether it responds, as a master.
    pub(crate) async fn is_master(&self) -> bool {
        self.replication_info_has(&["role:master"]).await
    }

    async fn replication_info_has(&self, lines: &[&str]) -> bool {
        let info = self.try_query::<String>(&["INFO", "replication"]).await.unwrap_or_default();
        lines.iter().all(|line| info.lines().any(|field| field == *line))
    }

    /// Sends a command and returns the reply, or `None` if it is down, paused or replies with an
    /// error.
    pub(crate) async fn try_query<T: redis::FromRedisValue>(&self, words: &[&str]) -> Option<T> {
        if !self.is_up() {
            return None;
        }
        let cli = crate::Cli::connect(self.addr(), self.config.password()).await.ok()?;
        cli.try_query(words).await.ok()
    }
}
