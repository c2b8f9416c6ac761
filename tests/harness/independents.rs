//! Several independent Redis servers, for Redlock.

mod engine;

use tokio::sync::OnceCell;

use crate::authority::Authority;
use crate::servers::hosts;
use crate::{Proxy, RedisServer, RedisServerBuilder, Servers, patient, with_query};

/// Servers with the same settings, which are killed when this value is dropped, and the proxies in
/// front of them if a test uses these.
#[derive(Debug)]
pub struct Independents {
    nodes: Vec<RedisServer>,
    proxies: OnceCell<Vec<Proxy>>,
}

impl Independents {
    /// Starts `count` servers without passwords, TLS or persistence.
    ///
    /// # Panics
    ///
    /// As [`RedisServer::start`] does.
    pub async fn start(count: usize) -> Self {
        Self::builder().count(count).start().await
    }

    /// Returns a builder, for passwords, users, TLS or append-only files.
    pub fn builder() -> IndependentsBuilder {
        IndependentsBuilder { node: RedisServer::builder(), count: 5, tls: false }
    }

    /// Returns `redlock://P1,…,P5`, with the password if there is one.
    pub fn url(&self) -> String {
        self.url_to("redlock", &hosts(&self.nodes, RedisServer::addr))
    }

    /// Returns [`url`](Self::url) with settings: `url_with("ttl=1s&prefix=test:")`.
    pub fn url_with(&self, query: &str) -> String {
        with_query(&self.url(), query)
    }

    /// Returns [`url`](Self::url) with `tls=true` and the TLS ports.
    ///
    /// # Panics
    ///
    /// If the servers were built without TLS.
    pub fn tls_url(&self) -> String {
        with_query(&self.url_to("redlock", &hosts(&self.nodes, RedisServer::tls_addr)), "tls=true")
    }

    /// Returns [`url`](Self::url) through the [`proxies`](Self::proxies).
    pub async fn url_through_proxies(&self) -> String {
        let addrs: Vec<String> = self.proxies().await.iter().map(Proxy::addr).collect();
        self.url_to("redlock", &addrs.join(","))
    }

    /// Returns a proxy for each server, in the same order. The first call starts them, on its own
    /// runtime.
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

    /// Returns all servers.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// Returns the server with this index.
    ///
    /// # Panics
    ///
    /// If there is no such server. So do all methods that take an index.
    pub fn node(&self, number: usize) -> &RedisServer {
        &self.nodes[number]
    }

    /// Calls [`RedisServer::kill`].
    pub fn kill(&self, number: usize) {
        self.node(number).kill();
    }

    /// Calls [`RedisServer::revive`]: with the data on disk.
    pub async fn revive(&self, number: usize) {
        self.node(number).revive().await;
    }

    /// Calls [`RedisServer::restart`]: without data, even if it has an append-only file.
    pub async fn restart(&self, number: usize) {
        self.node(number).restart().await;
    }

    /// Calls [`RedisServer::stop_signal`].
    pub fn stop_signal(&self, number: usize) {
        self.node(number).stop_signal();
    }

    /// Calls [`RedisServer::continue_signal`].
    pub fn continue_signal(&self, number: usize) {
        self.node(number).continue_signal();
    }

    fn url_to(&self, scheme: &str, hosts: &str) -> String {
        let login = self.nodes.first().map(RedisServer::login).unwrap_or_default();
        patient(&format!("{scheme}://{login}{hosts}"))
    }
}

impl Servers for Independents {
    fn servers(&self) -> Vec<&RedisServer> {
        self.nodes.iter().collect()
    }
}

/// A builder for [`Independents`].
#[derive(Debug, Clone)]
#[must_use = "a builder starts nothing before `start()`"]
pub struct IndependentsBuilder {
    node: RedisServerBuilder,
    count: usize,
    tls: bool,
}

impl IndependentsBuilder {
    /// Sets the number of servers: five by default.
    pub fn count(mut self, count: usize) -> Self {
        self.count = count;
        self
    }

    /// Sets the settings of each server: `servers(RedisServer::builder().appendonly())`.
    pub fn servers(mut self, node: RedisServerBuilder) -> Self {
        self.node = node;
        self
    }

    /// Uses TLS on all servers, under one authority.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Starts them all at once and returns once all respond.
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
