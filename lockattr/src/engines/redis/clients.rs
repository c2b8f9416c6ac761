//! Stores that a program makes from its own clients: with their TLS, their logins and their sockets.

use std::sync::Arc;

use redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use super::RedisStore;
use super::cluster::Cluster;
use super::config::{Config, Server};
use super::endpoint::Endpoint;
use super::scripts::Scripts;
use super::sentinels::Sentinels;
use super::servers::Servers;
use crate::Error;
use crate::lock::server_options::ServerOptions;

impl RedisStore {
    /// Makes a store from a client of the program's. Does not contact the server.
    ///
    /// The store opens its own connections. Of the client it takes the address, the login, the
    /// database, the TLS settings, the socket settings, and the name for `CLIENT SETINFO` (by default
    /// `lockattr`). It uses RESP3 whatever the client says, or RESP2 if the server does not know it,
    /// and always sets `TCP_NODELAY`.
    ///
    /// What a program sets on a connection and not on its client has no effect here: the timeouts
    /// are those of `options`, and a DNS resolver or a `StreamingCredentialsProvider` of the Redis
    /// client is not used. For a password that rotates, use
    /// [`credentials`](ServerOptions::credentials).
    ///
    /// A client with TLS uses the cryptography provider that rustls has for the whole process. If
    /// the program contains several, it must install one before it connects.
    ///
    /// ```
    /// use lockattr::LockManager;
    /// use lockattr::store::{RedisStore, ServerOptions, redis};
    ///
    /// let client = redis::Client::open("redis://locks:secret@db.example/2").expect("a valid URL");
    /// let store = RedisStore::from_client(client, ServerOptions::new())?;
    /// let manager = LockManager::builder().store(store).build()?;
    /// # let _ = manager;
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if an option is out of range.
    #[expect(clippy::needless_pass_by_value, reason = "the program passes its client on")]
    pub fn from_client(client: Client, options: ServerOptions) -> Result<Self, Error> {
        let endpoint = Endpoint::of_client(client.get_connection_info().clone());
        Ok(Self::of(&Config::at(endpoint, options)?))
    }

    /// Makes a store for the master that these sentinels name. Does not contact the servers.
    ///
    /// `server` says how the master is reached: its login, database and TLS. Its host and port are
    /// not used, because the sentinels name them. The clients of `redis::sentinel` do not show
    /// their parts, so the parameters are those of `SentinelClient::build`. With certificates, pass
    /// `Client::build_with_tls(…)?.get_connection_info().clone()` in place of an address.
    ///
    /// A provider of [`credentials`](ServerOptions::credentials) is asked for the master's login; that
    /// of the sentinels stays as it is here. [`from_client`](Self::from_client) says what of the
    /// settings counts.
    ///
    /// ```
    /// use lockattr::store::{RedisStore, ServerOptions};
    ///
    /// let sentinels = ["redis://s1:26379", "redis://s2:26379", "redis://s3:26379"];
    /// let server = "redis://locks:secret@by-the-sentinels/";
    /// let store = RedisStore::from_sentinels(sentinels, "mymaster", server, ServerOptions::new())?;
    /// assert!(!format!("{store:?}").contains("secret"));
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if there is no sentinel, or an address or an option is invalid.
    pub fn from_sentinels<T: IntoConnectionInfo>(
        sentinels: impl IntoIterator<Item = T>,
        master_name: impl Into<String>,
        server: impl IntoConnectionInfo,
        options: ServerOptions,
    ) -> Result<Self, Error> {
        let template = Endpoint::of_client(read(server)?);
        let infos = read_all(sentinels)?;
        if infos.is_empty() {
            return Err(Error::InvalidOptions("`from_sentinels` needs a sentinel".into()));
        }
        let address = shown(&infos);
        let endpoints = infos.into_iter().map(Endpoint::of_client).collect();
        let sentinels = Sentinels::new(endpoints, master_name.into(), template, &address, &options);
        Ok(Self::of(&Config::new(Server::Found(sentinels), &address, options)?))
    }

    /// Makes a store in the cluster that these nodes belong to. Does not contact the nodes.
    ///
    /// Any of the cluster's nodes will do; the others are found through them. Login, TLS and socket
    /// settings of the first count for all nodes. A `ClusterClient` does not show its parts, so the
    /// parameters are those of `ClusterClient::new`. The store does not read from replicas, and its
    /// retries are those of the [`LockManager`](crate::LockManager).
    /// [`from_client`](Self::from_client) says what of the settings counts.
    ///
    /// ```
    /// use lockattr::store::{RedisStore, ServerOptions};
    ///
    /// let nodes = ["redis://locks:secret@db-1", "redis://locks:secret@db-2"];
    /// let store = RedisStore::from_cluster(nodes, ServerOptions::new())?;
    /// assert!(!format!("{store:?}").contains("secret"));
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if there is no node, an address or an option is invalid, or the
    /// nodes have different logins or a database.
    pub fn from_cluster<T: IntoConnectionInfo>(
        nodes: impl IntoIterator<Item = T>,
        options: ServerOptions,
    ) -> Result<Self, Error> {
        let invalid = |sentence: &str| Error::InvalidOptions(sentence.into());
        options.check()?;
        let infos = read_all(nodes)?;
        let [first, ..] = infos.as_slice() else {
            return Err(invalid("`from_cluster` needs a node"));
        };
        if !infos.iter().all(|info| is_reached_like(info, first)) {
            let sentence =
                "the nodes of a cluster have one login, and TLS on all of them or on none";
            return Err(invalid(sentence));
        }
        if infos.iter().any(|info| info.redis_settings().db() != 0) {
            return Err(invalid("a cluster has no databases: leave the database out"));
        }
        let seeds = infos.iter().map(|info| match info.addr() {
            ConnectionAddr::Unix(_) => Err(invalid("a node of a cluster needs a host and a port")),
            addr => Ok(addr.to_string()),
        });
        let seeds = seeds.collect::<Result<_, _>>()?;
        let (address, template) = (shown(&infos), Endpoint::of_client(first.clone()));
        let scripts = Arc::new(Scripts::of_a_cluster());
        let cluster = Cluster::new(seeds, template, options, &scripts);
        Ok(Self { servers: Servers::of_a_cluster(cluster), address, scripts })
    }
}

fn read_all<T: IntoConnectionInfo>(
    servers: impl IntoIterator<Item = T>,
) -> Result<Vec<ConnectionInfo>, Error> {
    servers.into_iter().map(read).collect()
}

/// The Redis client's own message does not quote the URL.
fn read(server: impl IntoConnectionInfo) -> Result<ConnectionInfo, Error> {
    server.into_connection_info().map_err(|error| {
        Error::InvalidOptions(format!("the address of a Redis server is invalid: {error}"))
    })
}

/// Returns the addresses, without logins.
fn shown(infos: &[ConnectionInfo]) -> String {
    let addresses: Vec<_> = infos.iter().map(|info| info.addr().to_string()).collect();
    addresses.join(",")
}

/// Returns whether both have the same login, and both TLS or neither.
fn is_reached_like(one: &ConnectionInfo, other: &ConnectionInfo) -> bool {
    let encrypted = |info: &ConnectionInfo| matches!(info.addr(), ConnectionAddr::TcpTls { .. });
    let (login, other_login) = (one.redis_settings(), other.redis_settings());
    encrypted(one) == encrypted(other)
        && login.username() == other_login.username()
        && login.password() == other_login.password()
}
