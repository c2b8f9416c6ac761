//! The settings that a test chooses for its server.

use std::path::PathBuf;
use std::sync::Arc;

use super::{RedisServer, launch};
use crate::authority::Authority;

/// A builder for a [`RedisServer`], or for each server of a [`Sentinels`](crate::Sentinels), a
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

/// The role that the program is started in.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Server,
    Sentinel,
    ClusterNode,
}

impl RedisServerBuilder {
    /// Sets the default user's password. Every URL of the server contains it, except the Unix
    /// socket's. A replica logs in to its master with the same password.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Adds a user, with the rules of `ACL SETUSER`: `user("app", "secret", "~lock:* &* +@all
    /// -@admin")`.
    pub fn user(mut self, name: &str, password: &str, rules: &str) -> Self {
        self.users.push((name.to_owned(), password.to_owned(), rules.to_owned()));
        self
    }

    /// Adds a second port with TLS, with a certificate for `localhost` and `127.0.0.1` from the
    /// server's own authority.
    pub fn tls(mut self) -> Self {
        self.authority.get_or_insert_with(Authority::generate);
        self
    }

    /// [`tls`](Self::tls), with a certificate for `db.example` only.
    pub fn tls_of_another_name(mut self) -> Self {
        self.authority = Some(Authority::of_another_name());
        self
    }

    /// [`tls`](Self::tls), with a certificate that has expired.
    pub fn tls_expired(mut self) -> Self {
        self.authority = Some(Authority::expired());
        self
    }

    /// [`tls`](Self::tls), but only for clients with a certificate of the same authority, such as
    /// the one at [`RedisServer::client_cert_path`]. The port without TLS stays, for the harness.
    pub fn tls_clients(mut self) -> Self {
        self.tls_clients = true;
        self.tls()
    }

    /// Also uses TLS between servers: replication, the cluster bus, sentinels. The servers then
    /// know one another by their TLS ports.
    pub(crate) fn tls_among_servers(mut self, authority: &Arc<Authority>) -> Self {
        self.authority = Some(Arc::clone(authority));
        self.tls_among_servers = true;
        self
    }

    /// Syncs every write to disk before its reply, so [`RedisServer::revive`] restores everything.
    pub fn appendonly(mut self) -> Self {
        self.appendonly = true;
        self
    }

    /// Makes it a replica of `master`, which must have the same password, if any. It may still be
    /// synchronizing when it first responds: [`RedisServer::linked`] waits for the end of that.
    pub fn replica_of(self, master: &RedisServer) -> Self {
        self.line(&format!("replicaof 127.0.0.1 {}", master.peer_port()))
    }

    /// Makes it a cluster node that knows no other node and has no slots yet.
    pub fn cluster_enabled(mut self) -> Self {
        self.mode = Mode::ClusterNode;
        self
    }

    /// Makes it a sentinel.
    pub(crate) fn sentinel(mut self) -> Self {
        self.mode = Mode::Sentinel;
        self
    }

    /// Adds any other line of `redis.conf`, such as `maxmemory 2mb`.
    pub fn line(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// Runs this program instead of the usual one, for a test that needs a particular version.
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// Starts the server and returns once it responds.
    ///
    /// # Panics
    ///
    /// As [`RedisServer::start`] does.
    pub async fn start(self) -> RedisServer {
        launch::launch(self).await
    }

    /// Starts them all at once and returns once all respond.
    pub(crate) async fn start_all(all: Vec<Self>) -> Vec<RedisServer> {
        let starting: Vec<_> = all.into_iter().map(|one| tokio::spawn(one.start())).collect();
        let mut servers = Vec::new();
        for server in starting {
            servers.push(server.await.unwrap_or_else(|error| panic!("{error}")));
        }
        servers
    }
}
