//! The interface to one or several Redis servers, which a test checks at its end.

use crate::{Engine, RedisServer, RedisServerBuilder};

/// One server, or several that serve the same clients.
pub trait Servers {
    /// Returns the servers that keep data, whether they are up or down.
    fn servers(&self) -> Vec<&RedisServer>;
}

impl Servers for RedisServer {
    fn servers(&self) -> Vec<&RedisServer> {
        vec![self]
    }
}

impl<T: Servers + ?Sized> Servers for &T {
    fn servers(&self) -> Vec<&RedisServer> {
        (**self).servers()
    }
}

/// Returns `127.0.0.1:P1,127.0.0.1:P2,…`, for the URL of several servers.
pub(crate) fn hosts(servers: &[RedisServer], addr: impl Fn(&RedisServer) -> String) -> String {
    servers.iter().map(addr).collect::<Vec<_>>().join(",")
}

/// Returns a builder with an append-only file, without fsync: written data survives `kill -9`.
pub(crate) fn durable() -> RedisServerBuilder {
    RedisServer::builder().appendonly().line("appendfsync no")
}

/// Waits until `count` replicas count for `WAIT`, which they do from their first message on.
pub(crate) async fn wait_for_replicas(master: &RedisServer, count: usize) {
    let cli = master.cli().await;
    cli.query::<()>(&["SET", "lockattr:test:fence", "replicated"]).await;
    cli.query::<usize>(&["WAIT", &count.to_string(), "20000"]).await;
}

/// Returns [`Engine::left`] of all servers.
pub(crate) async fn left_on(servers: &impl Servers) -> Vec<String> {
    let mut left = Vec::new();
    for server in servers.servers() {
        left.extend(server.left().await);
    }
    left
}
