//! What a server says of itself as a master or as a replica.

use super::{RedisServer, STARTS_WITHIN};
use crate::eventually::Patience;

impl RedisServer {
    /// Returns when it is a replica that has all of its master's data and gets what is new.
    ///
    /// # Panics
    ///
    /// When it is not within twenty seconds.
    pub async fn linked(&self) {
        let mut patience = Patience::new(STARTS_WITHIN);
        while !self.is_linked().await {
            assert!(patience.pause().await, "{} has no link to its master", self.addr());
        }
    }

    /// Whether it answers, and as a replica that has all of its master's data.
    pub(crate) async fn is_linked(&self) -> bool {
        self.says(&["role:slave", "master_link_status:up"]).await
    }

    /// Whether it answers, and as a master.
    pub(crate) async fn is_master(&self) -> bool {
        self.says(&["role:master"]).await
    }

    async fn says(&self, lines: &[&str]) -> bool {
        let info = self.ask::<String>(&["INFO", "replication"]).await.unwrap_or_default();
        lines.iter().all(|line| info.lines().any(|said| said == *line))
    }

    /// What it answers, unless it is down or stands still, or refuses.
    pub(crate) async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> Option<T> {
        if !self.is_up() {
            return None;
        }
        let cli = crate::Cli::connect(self.addr(), self.config.password()).await.ok()?;
        cli.try_query(words).await.ok()
    }
}
