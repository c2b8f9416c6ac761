//! Failovers by the sentinels, and waiting until all is stable again.

use std::collections::BTreeMap;

use super::{MASTER, NAME, Sentinels};
use crate::RedisServer;
use crate::eventually::{Backoff, HUNG};

impl Sentinels {
    /// Makes the sentinels fail over from the healthy master, and returns the new one.
    ///
    /// # Panics
    ///
    /// As [`failed_over`](Self::failed_over) does.
    pub async fn switch_over(&self) -> &RedisServer {
        self.failed_over(self.master().await).await
    }

    /// Makes the sentinels fail over from `old`, whether it is up, stopped or down. Waits until all
    /// sentinels that are up name a master other than `old`, and it reports that role itself. Returns
    /// the new master.
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
            self.request_failover(old).await;
            assert!(backoff.pause().await, "no other master than {} within {HUNG:?}", old.addr());
        }
    }

    /// Asks a sentinel to replace the master that it names, unless that is another one than `old` and knows of its
    /// role. It refuses while a failover is under way, and while it knows of no fit replica, as for a moment after
    /// another failover.
    async fn request_failover(&self, old: &RedisServer) {
        let sentinel = self.sentinels.iter().find(|sentinel| sentinel.is_up());
        let sentinel = sentinel.expect("a sentinel that is up");
        let Some((_, port)) = sentinel.try_query::<(String, String)>(&MASTER).await else { return };
        let named = self.servers.iter().find(|server| server.peer_port().to_string() == port);
        // A sentinel that has not heard of a failover for eight seconds makes the new master a replica again. When it
        // has, all of them name a master that is none, and would wait for as long as `down-after-milliseconds`.
        let is_followed = match named.filter(|named| named.addr() != old.addr()) {
            Some(named) => named.is_master().await,
            None => false,
        };
        if !is_followed && (old.is_up() || self.knows_offsets(sentinel).await) {
            sentinel.try_query::<()>(&["SENTINEL", "FAILOVER", NAME]).await;
        }
    }

    /// Returns whether the sentinel knows how much data each replica has: it promotes the one that has most.
    async fn knows_offsets(&self, sentinel: &RedisServer) -> bool {
        for replica in query_replicas(sentinel).await {
            let port = replica.get("port");
            let server = self.servers.iter().find(|one| port == Some(&one.peer_port().to_string()));
            let Some(server) = server.filter(|server| server.is_up()) else { continue };
            let info =
                server.try_query::<String>(&["INFO", "replication"]).await.unwrap_or_default();
            let own = info.lines().find_map(|line| line.strip_prefix("slave_repl_offset:"));
            if own != replica.get("slave-repl-offset").map(String::as_str) {
                return false;
            }
        }
        true
    }

    /// Waits until all is stable: all sentinels that are up name one master and know one another,
    /// and every other server that is up is its replica and has all of its data.
    ///
    /// # Panics
    ///
    /// If that takes longer than [`HUNG`](crate::HUNG).
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
        let replicas = query_replicas(sentinel).await;
        let promotable = replicas.iter().filter(|replica| {
            let is = |field: &str, value: &str| replica.get(field).is_some_and(|it| it == value);
            is("flags", "slave") && is("master-link-status", "ok")
        });
        let up = self.servers.iter().filter(|server| server.is_up()).count();
        promotable.count() + 1 >= up
    }
}

async fn query_replicas(sentinel: &RedisServer) -> Vec<BTreeMap<String, String>> {
    sentinel.try_query(&["SENTINEL", "REPLICAS", NAME]).await.unwrap_or_default()
}
