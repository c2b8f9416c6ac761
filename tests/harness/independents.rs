//! Several servers that know nothing of one another, as a quorum is asked of.

mod engine;

use tokio::sync::OnceCell;

use crate::redis_server::Authority;
use crate::servers::hosts;
use crate::{Proxy, RedisServer, RedisServerBuilder, Servers};

/// Servers of one kind that end with this value, and the proxies in front of them, if asked for.
#[derive(Debug)]
pub struct Independents {
    nodes: Vec<RedisServer>,
    proxies: OnceCell<Vec<Proxy>>,
}

impl Independents {
    /// Starts so many servers without passwords, TLS or persistence.
    ///
    /// # Panics
    ///
    /// As [`RedisServer::start`] does.
    pub async fn start(count: usize) -> Self {
        Self::builder().count(count).start().await
    }

    /// For passwords, users, TLS or append-only files.
    pub fn builder() -> IndependentsBuilder {
        IndependentsBuilder { node: RedisServer::builder(), count: 5, tls: false }
    }

    /// `redlock://P1,…,P5`, with the password if there is one.
    pub fn url(&self) -> String {
        self.url_to("redlock", &hosts(&self.nodes, RedisServer::addr))
    }

    /// [`url`](Self::url) with settings: `url_with("ttl=1s&prefix=test:")`.
    pub fn url_with(&self, query: &str) -> String {
        format!("{}?{query}", self.url())
    }

    /// [`url`](Self::url) with `tls=true`: the ports that speak TLS.
    ///
    /// # Panics
    ///
    /// When the servers were built without TLS.
    pub fn tls_url(&self) -> String {
        format!("{}?tls=true", self.url_to("redlock", &hosts(&self.nodes, RedisServer::tls_addr)))
    }

    /// [`url`](Self::url) through the [`proxies`](Self::proxies).
    pub async fn url_through_proxies(&self) -> String {
        let addrs: Vec<String> = self.proxies().await.iter().map(Proxy::addr).collect();
        self.url_to("redlock", &addrs.join(","))
    }

    /// A proxy in front of each server, in their order; started when asked for, on the runtime that
    /// asks first.
    pub async fn proxies(&self) -> &[Proxy] {
        let start = async || {
            let mut proxies = Vec::new();
            for node in &self.nodes {
                proxies.push(Proxy::start(node.addr()).await);
            }
            proxies
        };
        self.proxies.get_or_init(start).await
    }

    /// All servers.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The server of this number, from zero: for its `cli()`, `addr()` and all else.
    ///
    /// # Panics
    ///
    /// When there are not so many, as all that take a number do.
    pub fn node(&self, number: usize) -> &RedisServer {
        &self.nodes[number]
    }

    /// [`RedisServer::kill`].
    pub fn kill(&self, number: usize) {
        self.node(number).kill();
    }

    /// [`RedisServer::revive`]: with what is on disk.
    pub async fn revive(&self, number: usize) {
        self.node(number).revive().await;
    }

    /// [`RedisServer::restart`]: with no data, whether it keeps any or not.
    pub async fn restart(&self, number: usize) {
        self.node(number).restart().await;
    }

    /// [`RedisServer::stop_signal`].
    pub fn stop_signal(&self, number: usize) {
        self.node(number).stop_signal();
    }

    /// [`RedisServer::continue_signal`].
    pub fn continue_signal(&self, number: usize) {
        self.node(number).continue_signal();
    }

    fn url_to(&self, scheme: &str, hosts: &str) -> String {
        let login = self.nodes.first().map(RedisServer::login).unwrap_or_default();
        format!("{scheme}://{login}{hosts}")
    }
}

impl Servers for Independents {
    fn servers(&self) -> Vec<&RedisServer> {
        self.nodes.iter().collect()
    }
}

/// Wishes for [`Independents`].
#[derive(Debug, Clone)]
#[must_use = "a builder starts nothing before `start()`"]
pub struct IndependentsBuilder {
    node: RedisServerBuilder,
    count: usize,
    tls: bool,
}

impl IndependentsBuilder {
    /// How many there are: five by default.
    pub fn count(mut self, count: usize) -> Self {
        self.count = count;
        self
    }

    /// The wishes for each: `servers(RedisServer::builder().appendonly())`.
    pub fn servers(mut self, node: RedisServerBuilder) -> Self {
        self.node = node;
        self
    }

    /// TLS on all, under one authority.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Starts them all at once and returns when all answer.
    ///
    /// # Panics
    ///
    /// As [`RedisServer::start`] does.
    pub async fn start(mut self) -> Independents {
        if self.tls {
            self.node = self.node.tls_among_servers(&Authority::generate());
        }
        let nodes = RedisServerBuilder::start_all(vec![self.node; self.count]).await;
        Independents { nodes, proxies: OnceCell::new() }
    }
}
