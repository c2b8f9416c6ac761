//! Starts a master, its replicas and their sentinels, all with short periods.

use super::{NAME, Sentinels};
use crate::authority::Authority;
use crate::redis_server::quoted;
use crate::{RedisServer, RedisServerBuilder};

/// The number of sentinels, and how many of them must agree that the master is down: a majority.
const SENTINELS: usize = 3;
const QUORUM: usize = 2;

/// The sentinels' periods in milliseconds. The defaults are one second or ten.
const SHORT_PERIODS: [&str; 10] = [
    "INFO-PERIOD",
    "200",
    "PUBLISH-PERIOD",
    "200",
    // A replica that was silent for five of these periods is not promoted.
    "PING-PERIOD",
    "500",
    "ASK-PERIOD",
    "200",
    // A sentinel whose own process was paused does nothing for this long. The default is 30 s.
    "TILT-PERIOD",
    "1000",
];

/// A builder for [`Sentinels`].
#[derive(Debug, Clone)]
#[must_use = "a builder starts nothing before `start()`"]
pub struct SentinelsBuilder {
    replicas: usize,
    server: RedisServerBuilder,
    sentinel: RedisServerBuilder,
    tls: bool,
}

impl Default for SentinelsBuilder {
    fn default() -> Self {
        let (server, sentinel) = (RedisServer::builder(), RedisServer::builder());
        Self { replicas: 2, server, sentinel, tls: false }
    }
}

impl SentinelsBuilder {
    /// Sets the number of replicas: two by default.
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
    }

    /// Sets the settings of each server: `servers(RedisServer::builder().password("secret"))`.
    pub fn servers(mut self, server: RedisServerBuilder) -> Self {
        self.server = server;
        self
    }

    /// Sets the sentinels' own password. By default they have none, even if the servers have one.
    pub fn sentinel_password(mut self, password: &str) -> Self {
        let sentinel = self.sentinel.password(password);
        self.sentinel = sentinel.line(&format!("sentinel sentinel-pass {}", quoted(password)));
        self
    }

    /// Uses TLS on all servers and sentinels and between them, under one authority.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Starts all servers and sentinels, and returns once they are ready.
    ///
    /// # Panics
    ///
    /// As [`Sentinels::start`] does.
    pub async fn start(mut self) -> Sentinels {
        if self.tls {
            let authority = Authority::generate();
            self.server = self.server.tls_among_servers(&authority);
            self.sentinel = self.sentinel.tls_among_servers(&authority);
        }
        let master = self.server.clone().start().await;
        let replica = self.server.replica_of(&master);
        let sentinel = monitoring(self.sentinel, &master);
        let mut all = vec![replica; self.replicas];
        all.extend(vec![sentinel; SENTINELS]);
        let mut servers = RedisServerBuilder::start_all(all).await;
        let sentinels = servers.split_off(self.replicas);
        servers.insert(0, master);
        for sentinel in &sentinels {
            let command: Vec<_> = ["SENTINEL", "DEBUG"].into_iter().chain(SHORT_PERIODS).collect();
            sentinel.cli().await.query::<()>(&command).await;
        }
        let all = Sentinels { servers, sentinels };
        all.settled().await;
        all
    }
}

fn monitoring(sentinel: RedisServerBuilder, master: &RedisServer) -> RedisServerBuilder {
    let port = master.peer_port();
    let sentinel = sentinel
        .sentinel()
        .line(&format!("sentinel monitor {NAME} 127.0.0.1 {port} {QUORUM}"))
        // An hour: no server is taken for down because the machine is busy.
        .line(&format!("sentinel down-after-milliseconds {NAME} 3600000"))
        // A failed failover is retried after twice this time.
        .line(&format!("sentinel failover-timeout {NAME} 3000"))
        .line(&format!("sentinel parallel-syncs {NAME} 5"));
    match master.password() {
        Some(password) => sentinel.line(&format!("sentinel auth-pass {NAME} {}", quoted(password))),
        None => sentinel,
    }
}
