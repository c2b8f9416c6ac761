//! What a test wishes of its server.

use std::path::PathBuf;
use std::sync::Arc;

use super::tls::Authority;
use super::{RedisServer, launch};

/// Wishes for a [`RedisServer`], or for each server of a [`Sentinels`](crate::Sentinels), a
/// [`Cluster`](crate::Cluster) or an [`Independents`](crate::Independents).
#[derive(Debug, Default, Clone)]
#[must_use = "a builder starts nothing before `start()`"]
pub struct RedisServerBuilder {
    pub(super) password: Option<String>,
    pub(super) users: Vec<(String, String, String)>,
    pub(super) authority: Option<Arc<Authority>>,
    pub(super) tls_clients: bool,
    pub(super) tls_among_servers: bool,
    pub(super) appendonly: bool,
    pub(super) lines: Vec<String>,
    pub(super) mode: Mode,
    pub(super) program: Option<PathBuf>,
}

/// What the program is started as.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Server,
    Sentinel,
    ClusterNode,
}

impl RedisServerBuilder {
    /// The default user's password; it is in every URL of the server but the socket's. A replica
    /// logs in to its master with the same.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// One more user, with the rules of `ACL SETUSER`: `user("app", "secret", "~lock:* &* +@all
    /// -@admin")`.
    pub fn user(mut self, name: &str, password: &str, rules: &str) -> Self {
        self.users.push((name.to_owned(), password.to_owned(), rules.to_owned()));
        self
    }

    /// A second port that speaks TLS, with a certificate for `localhost` and `127.0.0.1` from an
    /// authority of its own.
    pub fn tls(mut self) -> Self {
        self.authority.get_or_insert_with(Authority::generate);
        self
    }

    /// [`tls`](Self::tls) for clients only that show a certificate of the same authority, such as
    /// the one at [`RedisServer::client_cert_path`]. The port without TLS stays, for the harness.
    pub fn tls_clients(mut self) -> Self {
        self.tls_clients = true;
        self.tls()
    }

    /// TLS also for what servers say to one another: replication, the cluster's bus, sentinels. The address by which they know one another is that of the TLS port.
    pub(crate) fn tls_among_servers(mut self, authority: &Arc<Authority>) -> Self {
        self.authority = Some(Arc::clone(authority));
        self.tls_among_servers = true;
        self
    }

    /// Every write is on disk before it is answered, so [`RedisServer::revive`] brings all back.
    pub fn appendonly(mut self) -> Self {
        self.appendonly = true;
        self
    }

    /// A copy of `master`, which has the same password, if any. It may still be copying when it
    /// answers for the first time: [`RedisServer::linked`] waits for that.
    pub fn replica_of(self, master: &RedisServer) -> Self {
        self.line(&format!("replicaof 127.0.0.1 {}", master.peer_port()))
    }

    /// A node of a cluster of its own, which knows no other and has no slots as yet.
    pub fn cluster_enabled(mut self) -> Self {
        self.mode = Mode::ClusterNode;
        self
    }

    /// Not a server, but one that watches over others.
    pub(crate) fn sentinel(mut self) -> Self {
        self.mode = Mode::Sentinel;
        self
    }

    /// Any other line of `redis.conf`, such as `maxmemory 2mb`.
    pub fn line(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// Another program than the one that all tests run, for a test that has to have just that.
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// Starts the server and returns once it answers.
    ///
    /// # Panics
    ///
    /// As [`RedisServer::start`] does.
    pub async fn start(self) -> RedisServer {
        launch::launch(self).await
    }

    /// Starts them all at once and returns when all answer.
    pub(crate) async fn start_all(all: Vec<Self>) -> Vec<RedisServer> {
        let starting: Vec<_> = all.into_iter().map(|one| tokio::spawn(one.start())).collect();
        let mut servers = Vec::new();
        for server in starting {
            servers.push(server.await.unwrap_or_else(|error| panic!("{error}")));
        }
        servers
    }
}
