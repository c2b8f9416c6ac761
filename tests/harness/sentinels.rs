//! A master, its replicas, and three sentinels that make one of these the master when it dies.

mod builder;
mod engine;
mod failover;

use std::collections::BTreeMap;
use std::time::Duration;

pub use builder::SentinelsBuilder;

use crate::servers::hosts;
use crate::{RedisServer, Servers};

/// By this name the sentinels know the master.
const NAME: &str = "lockattr";

/// A failover takes about two seconds where nothing else is going on.
const LIMIT: Duration = Duration::from_secs(30);

/// Real servers under real sentinels, all of which end with this value.
///
/// The sentinels hold a server for down after half a second, and do by milliseconds what they
/// usually do by seconds. So do those that were killed and revived, but more slowly.
#[derive(Debug)]
pub struct Sentinels {
    servers: Vec<RedisServer>,
    sentinels: Vec<RedisServer>,
}

impl Sentinels {
    /// A master with two replicas, without passwords, TLS or persistence. Returns once the
    /// sentinels agree on the master and know its replicas and one another.
    ///
    /// # Panics
    ///
    /// When a server does not start, or the sentinels do not agree within thirty seconds.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// For another number of replicas, passwords, users, TLS or persistence.
    pub fn builder() -> SentinelsBuilder {
        SentinelsBuilder::default()
    }

    /// `redis+sentinel://P1,P2,P3/lockattr`, with the password of the servers behind the sentinels,
    /// if there is one.
    pub fn url(&self) -> String {
        self.url_by("redis+sentinel", RedisServer::addr)
    }

    /// [`url`](Self::url) with settings: `url_with("ttl=1s&replicas=1")`.
    pub fn url_with(&self, query: &str) -> String {
        format!("{}?{query}", self.url())
    }

    /// [`url`](Self::url) with `tls=true`: the ports of the sentinels that speak TLS.
    ///
    /// # Panics
    ///
    /// When they were built without TLS.
    pub fn tls_url(&self) -> String {
        format!("{}?tls=true", self.url_by("redis+sentinel", RedisServer::tls_addr))
    }

    fn url_by(&self, scheme: &str, addr: impl Fn(&RedisServer) -> String) -> String {
        let hosts = hosts(&self.sentinels, addr);
        format!("{scheme}://{}{hosts}/{NAME}", self.servers[0].login())
    }

    /// The sentinels: for `kill()`, `stop_signal()`, `revive()` and the like, and `cli()`.
    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// The server that most sentinels name now, be it up or down.
    ///
    /// # Panics
    ///
    /// When no sentinel answers.
    pub async fn master(&self) -> &RedisServer {
        let (server, _) = self.named().await.expect("no sentinel names a master");
        server
    }

    /// The other servers, be they up or down.
    ///
    /// # Panics
    ///
    /// As [`master`](Self::master) does.
    pub async fn replicas(&self) -> Vec<&RedisServer> {
        let master = self.master().await.addr();
        self.servers.iter().filter(|server| server.addr() != master).collect()
    }

    /// Whom most sentinels name, and whether all do that are up.
    async fn named(&self) -> Option<(&RedisServer, bool)> {
        let words = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME];
        let mut votes = BTreeMap::<String, usize>::new();
        let up: Vec<_> = self.sentinels.iter().filter(|sentinel| sentinel.is_up()).collect();
        for sentinel in &up {
            if let Some((_, port)) = sentinel.ask::<(String, String)>(&words).await {
                *votes.entry(port).or_default() += 1;
            }
        }
        let (port, count) = votes.into_iter().max_by_key(|(_, count)| *count)?;
        let master = self.servers.iter().find(|one| one.peer_port().to_string() == port)?;
        Some((master, count == up.len()))
    }
}

impl Servers for Sentinels {
    fn servers(&self) -> Vec<&RedisServer> {
        self.servers.iter().collect()
    }
}
