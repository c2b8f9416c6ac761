//! Failovers by the sentinels, and waiting until all is stable again.

use std::collections::BTreeMap;

use super::{NAME, Sentinels};
use crate::RedisServer;
use crate::eventually::{Backoff, HUNG};

impl Sentinels {
    /// Makes the sentinels fail over from the healthy master, and returns the new one.
    ///
    /// # Panics
    ///
    /// If they refuse, or as [`failed_over`](Self::failed_over) does.
    pub async fn switch_over(&self) -> &RedisServer {
        let old = self.master().await;
        let mut backoff = Backoff::new();
        let command = ["SENTINEL", "FAILOVER", NAME];
        let sentinel = self.sentinels.iter().find(|sentinel| sentinel.is_up());
        let sentinel = sentinel.expect("a sentinel that is up");
        // For a moment after another failover, the reply is "no good replica".
        while sentinel.try_query::<()>(&command).await.is_none() {
            assert!(backoff.pause().await, "the sentinels refuse a failover for {HUNG:?}");
        }
        self.failed_over(old).await
    }

    /// Waits until all sentinels that are up name a master other than `old`, and it reports that
    /// role itself. Returns the new master.
    ///
    /// # Panics
    ///
    /// If there is none within [`HUNG`](crate::HUNG).
    pub async fn failed_over(&self, old: &RedisServer) -> &RedisServer {
        let mut backoff = Backoff::new();
        loop {
            if let Some((master, true)) = self.query_master().await
                && master.addr() != old.addr()
                && master.is_master().await
            {
                return master;
            }
            assert!(backoff.pause().await, "no other master than {} within {HUNG:?}", old.addr());
        }
    }

    /// Waits until all is stable: all sentinels that are up name one master and know one another,
    /// and every other server that is up is its replica and has all of its data.
    ///
    /// # Panics
    ///
    /// If that takes longer than thirty seconds.
    pub async fn settled(&self) {
        let mut backoff = Backoff::new();
        while !self.is_settled().await {
            assert!(backoff.pause().await, "the sentinels do not agree within {HUNG:?}");
        }
    }

    async fn is_settled(&self) -> bool {
        let Some((master, true)) = self.query_master().await else {
            return false;
        };
        let replicas = self.servers.iter().filter(|one| one.is_up() && one.addr() != master.addr());
        for replica in replicas {
            if !replica.is_linked().await {
                return false;
            }
        }
        let others = (self.sentinels.len() - 1).to_string();
        let replicas = (self.servers.len() - 1).to_string();
        for sentinel in self.sentinels.iter().filter(|sentinel| sentinel.is_up()) {
            let words = ["SENTINEL", "MASTER", NAME];
            let state: BTreeMap<String, String> =
                sentinel.try_query(&words).await.unwrap_or_default();
            let is = |field: &str, value: &str| state.get(field).is_some_and(|it| it == value);
            let is_complete = is("num-other-sentinels", &others) && is("num-slaves", &replicas);
            if !(is_complete && is("flags", "master") && self.sees_replicas(sentinel).await) {
                return false;
            }
        }
        master.is_master().await
    }

    /// Returns whether the sentinel considers every replica that is up fit for promotion.
    async fn sees_replicas(&self, sentinel: &RedisServer) -> bool {
        type Replicas = Vec<BTreeMap<String, String>>;
        let replicas: Replicas =
            sentinel.try_query(&["SENTINEL", "REPLICAS", NAME]).await.unwrap_or_default();
        let promotable = replicas.iter().filter(|replica| {
            let is = |field: &str, value: &str| replica.get(field).is_some_and(|it| it == value);
            is("flags", "slave") && is("master-link-status", "ok")
        });
        let up = self.servers.iter().filter(|server| server.is_up()).count();
        promotable.count() + 1 >= up
    }
}
