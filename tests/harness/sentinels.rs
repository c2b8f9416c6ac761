//! A master, its replicas, and three sentinels that promote a replica when a test asks for it.

mod builder;
mod engine;
mod failover;

use std::collections::BTreeMap;

pub use builder::SentinelsBuilder;

use crate::servers::hosts;
use crate::{RedisServer, Servers, patient, with_query};

/// The master's name in the sentinels' configuration.
const NAME: &str = "lockattr";

/// What a sentinel is asked for the master's address.
const MASTER: [&str; 3] = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME];

/// Real servers under real sentinels, which are killed when this value is dropped.
///
/// The sentinels use periods of milliseconds where the defaults are seconds, but not those that were killed
/// and revived.
#[derive(Debug)]
pub struct Sentinels {
    servers: Vec<RedisServer>,
    sentinels: Vec<RedisServer>,
}

impl Sentinels {
    /// Starts a master with two replicas, without passwords, TLS or persistence. The sentinels replace a master
    /// when a test asks for it: [`failed_over`](Self::failed_over). Returns once they agree on the master and
    /// know its replicas and one another.
    ///
    /// # Panics
    ///
    /// If a server does not start, or the sentinels do not agree within [`HUNG`](crate::HUNG).
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Returns a builder, for another number of replicas, passwords, users, TLS or persistence.
    pub fn builder() -> SentinelsBuilder {
        SentinelsBuilder::default()
    }

    /// Returns `redis+sentinel://P1,P2,P3/lockattr`, with the password of the servers behind the
    /// sentinels if there is one.
    pub fn url(&self) -> String {
        self.url_by("redis+sentinel", RedisServer::addr)
    }

    /// Returns [`url`](Self::url) with settings: `url_with("ttl=1s&replicas=1")`.
    pub fn url_with(&self, query: &str) -> String {
        with_query(&self.url(), query)
    }

    /// Returns [`url`](Self::url) with `tls=true` and the sentinels' TLS ports.
    ///
    /// # Panics
    ///
    /// If they were built without TLS.
    pub fn tls_url(&self) -> String {
        with_query(&self.url_by("redis+sentinel", RedisServer::tls_addr), "tls=true")
    }

    fn url_by(&self, scheme: &str, addr: impl Fn(&RedisServer) -> String) -> String {
        let hosts = hosts(&self.sentinels, addr);
        patient(&format!("{scheme}://{}{hosts}/{NAME}", self.servers[0].login()))
    }

    /// Returns the sentinels.
    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// Returns the server that most sentinels name as the master, whether it is up or down.
    ///
    /// # Panics
    ///
    /// If no sentinel responds.
    pub async fn master(&self) -> &RedisServer {
        let (server, _) = self.query_master().await.expect("no sentinel names a master");
        server
    }

    /// Returns the other servers, whether they are up or down.
    ///
    /// # Panics
    ///
    /// As [`master`](Self::master) does.
    pub async fn replicas(&self) -> Vec<&RedisServer> {
        let master = self.master().await.addr();
        self.servers.iter().filter(|server| server.addr() != master).collect()
    }

    /// Returns the server that most sentinels name, and whether all sentinels that are up agree.
    async fn query_master(&self) -> Option<(&RedisServer, bool)> {
        let mut votes = BTreeMap::<String, usize>::new();
        let up: Vec<_> = self.sentinels.iter().filter(|sentinel| sentinel.is_up()).collect();
        for sentinel in &up {
            if let Some((_, port)) = sentinel.try_query::<(String, String)>(&MASTER).await {
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
