//! The store in a ZooKeeper ensemble.

#[cfg(feature = "tls")]
mod admission;
mod config;
mod entries;
#[cfg(fuzzing)]
pub mod fuzzed;
mod login;
mod make;
mod names;
mod parents;
mod reach;
mod recipe;
#[cfg(feature = "tls")]
mod relay;
mod session;
mod size;
mod sweep;
mod tls;
mod under_way;

use std::fmt;

use url::Url;

use super::sequenced::{SequencedStore, sequenced_store};
use crate::Error;
use crate::lock::server_options::ServerOptions;
use crate::store::url::StoreUrl;
use config::Config;
use entries::Zookeeper;

/// Locks in a ZooKeeper ensemble (3.6 and later).
///
/// Made by [`LockManager::connect`](crate::LockManager::connect) from a
/// `zookeeper://h1,h2,h3/chroot` URL, or by hand. Locks are stored below the node `chroot`, or
/// `/lockattr` if the URL names none. The query may set `session_timeout`, `connect_timeout`,
/// `response_timeout`, and `tls=true` with `ca`, `client_cert` and `client_key` (with the feature
/// `tls`).
///
/// A lock is a node under its name, with `/` and whatever else servers refuse written as `%2F`.
/// Each claim that holds it or waits has an ephemeral sequential node below it. Their order decides
/// whose turn it is, so no process overtakes. A waiter watches the node before its own, so a
/// release notifies one process. The nodes of locks are *containers*. A release also removes the
/// lock's node if no other claim has an entry there; the node of a lock that is used again within a
/// second stays until it has rested for one. What a process leaves behind when it dies, the servers
/// remove when it has been empty for a while (`znode.container.checkIntervalMs`, a minute by
/// default), and the `chroot` with the last of them. The counter of a fencing token is the *zxid* of the entry.
///
/// A claim for several keys writes all of them into each of its entries, and servers accept no
/// request beyond `jute.maxbuffer` (1 MiB by default): about 170 keys of twenty letters. A larger
/// claim is [refused](Error::InvalidOptions). If the servers' limit is lower, they close the
/// connection.
///
/// # How long a lease is
///
/// A store has one session, on a thread of its own. All its entries belong to that session. As long
/// as the process lives, a lease ends after its `ttl`, as in every store. When the process dies or
/// is cut off, its locks become free when the servers end the session: `session_timeout` (20 s)
/// after they last heard from the process, rounded up to their next tick, **whatever the `ttl`**. A
/// `ttl` can therefore be half of `session_timeout` at most: a holder can rely on its session only
/// for that long. The same limit applies to `hold_at_least`, which ends with the session if the
/// process ends.
///
/// The servers limit `session_timeout` to 2 to 20 of their ticks (of 2 s by default). If they grant
/// less than the store requests, connecting fails, and reports it. Set it to four ticks or more.
///
/// # Many requests at once
///
/// At most 64 acquires are under way at a time. The others wait in the process, where releases and
/// renewals overtake them. A connection counts as silent only if it has carried no reply at all for
/// `response_timeout`. So a store that is busy makes callers wait, and [`Contended`](Error::Contended)
/// when their wait budget ends, but loses no lease.
///
/// # Connections
///
/// A store has one connection, to one of the servers, whether it is idle, its locks are contended or
/// its claims wait: a watch is part of the session. All runtimes of the process share it. While a
/// session that was given up is closed, there is a second connection for a moment. With TLS the
/// store also has a connection to itself, and one port of the loopback interface for each server.
///
/// # Which fault loses what
///
/// * A server dies: the client connects to another. The outcome of open requests is unknown, as
///   always.
/// * The leader or most servers fail: nothing is granted or renewed until there is a leader. A
///   holder is notified [`Lost`](Error::Lost) at the end of its TTL. After an election all sessions
///   start anew, so no other process acquires the lock before.
/// * A server is cut off from the leader: it still answers its clients' pings, which prove nothing.
///   A renewal is a transaction that only a majority commits.
/// * The session ends, or the process could not reach any server for half of `session_timeout`: all
///   holds of this store are `Lost` at once, and all waiters enter the queue again in a new
///   session.
/// * A process is paused for longer than a session: other processes may hold its locks. It learns
///   this before its next step, because its clock ran on. With fencing tokens, a resource can
///   reject its late writes.
///
/// # Rights
///
/// Without a login, nodes are open to `world:anyone`. With `user:password@` in the URL (`digest`
/// authentication), only clients with the same login can access them. On a `chroot` that already
/// exists, the user needs the rights `crd`. Each acquire writes the lock's node, whose data is empty:
/// nodes that another program made there need the right `w`, and lose their data.
///
/// A [credentials provider](ServerOptions::credentials) is asked for each session, so a password
/// need not be in the URL. It cannot rotate while locks are held: ZooKeeper has no accounts, and a
/// `digest` password is part of the identity to which nodes belong. To change it, end all processes,
/// and start them again when the nodes of the locks are gone.
///
/// # TLS
///
/// With `tls=true`, all connections are encrypted, and each server must present a certificate for the
/// name that the URL has for it, signed by one of the system's authorities, or of those in the file
/// `ca`. Name the servers' `secureClientPort`, for which ZooKeeper has no default:
/// `zookeeper://zk1:2281,zk2:2281/locks?tls=true`. With `client_cert` and `client_key`, the store
/// presents a certificate of its own, which servers demand by default (`ssl.clientAuth`). The files are
/// read once, when the store is made.
///
/// The client itself takes neither these settings nor a stream. So it connects to the store, at a port
/// of the loopback interface, and the store relays to the server through TLS. Only a client that
/// knows the store's secret is relayed: others on the machine cannot use the certificate of this
/// process. The store chooses no cryptography provider for the process.
///
/// A store [from a connector](Self::from_connector) has the TLS of that connector: enable the feature
/// `tls` of `zookeeper-client`, and install a provider. If a certificate is refused then, the error
/// does not name the reason, because the client does not return it. This was tried by hand, and
/// lockattr's tests do not cover it: the feature brings a second provider into each program that
/// is built with them.
///
/// ```
/// use lockattr::store::ZookeeperStore;
///
/// let store = ZookeeperStore::open("zookeeper://app:secret@zk1,zk2,zk3/locks?session_timeout=30s")?;
/// assert!(!format!("{store:?}").contains("secret"));
/// # Ok::<(), lockattr::Error>(())
/// ```
pub struct ZookeeperStore {
    store: SequencedStore<Zookeeper>,
    config: Config,
}

impl ZookeeperStore {
    /// Makes the store that `url` names. Does not contact the servers.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the URL is not valid, or if this process was forked from one
    /// that had a connection to ZooKeeper: the client's one thread, which all connections need,
    /// stays in the parent.
    pub fn open(url: &str) -> Result<Self, Error> {
        let StoreUrl { urls, query } = StoreUrl::parse(url)?;
        Self::at(&urls, &query, &ServerOptions::default())
    }

    /// Makes a store with the program's own connector: its TLS and SASL options, authentication
    /// and server version. `cluster` names the servers in the client's notation, such as
    /// `tcp+tls://zk1:2281,tcp+tls://zk2:2281/chroot`.
    ///
    /// The store makes each of its sessions from a copy of `connector`. It replaces the session
    /// timeout and the connection timeout, and opens no read-only session. The connector must not be
    /// *detached*, and must not name a session. If it authenticates, consider
    /// [`with_private_nodes`](Self::with_private_nodes). Of `options`, the two timeouts and the
    /// [credentials provider](ServerOptions::credentials) apply. Does not contact the servers.
    ///
    /// ```
    /// use lockattr::store::{ServerOptions, ZookeeperStore};
    /// use zookeeper_client::Client;
    ///
    /// let connector = Client::connector().with_auth("digest", b"app:secret");
    /// let options = ServerOptions::new();
    /// let store = ZookeeperStore::from_connector(connector, "zk1,zk2,zk3/locks", options)?
    ///     .with_private_nodes();
    /// assert!(!format!("{store:?}").contains("secret"));
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if `cluster` names no server or an invalid path, an option is out of
    /// range, or this process was forked from one that had a connection to ZooKeeper.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the other stores take their options by value"
    )]
    pub fn from_connector(
        connector: zookeeper_client::Connector,
        cluster: &str,
        options: ServerOptions,
    ) -> Result<Self, Error> {
        let config = Config::of_connector(connector, cluster, &options)?;
        session::check_not_forked()?;
        Ok(Self::with(config))
    }

    /// The same store with another `session_timeout`: 20 s by default, 100 ms to one day.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lockattr::store::ZookeeperStore;
    ///
    /// let store = ZookeeperStore::open("zookeeper://zk1,zk2,zk3/locks")?;
    /// let store = store.with_session_timeout(Duration::from_secs(30))?;
    /// # let _ = store;
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if it is out of range, or not in whole milliseconds.
    pub fn with_session_timeout(self, session_timeout: std::time::Duration) -> Result<Self, Error> {
        Ok(Self::with(self.config.with_session_timeout(session_timeout)?))
    }

    /// The same store with nodes that only clients with its own identity can access, for a connector
    /// that authenticates.
    ///
    /// A store with a login in its URL, or with a credentials provider, does that by itself.
    ///
    /// ```
    /// use lockattr::store::{ServerOptions, ZookeeperStore};
    /// use zookeeper_client::Client;
    ///
    /// let connector = Client::connector().with_auth("digest", b"app:secret");
    /// let store = ZookeeperStore::from_connector(connector, "zk1,zk2", ServerOptions::new())?;
    /// let store = store.with_private_nodes();
    /// # let _ = store;
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    #[must_use]
    pub fn with_private_nodes(self) -> Self {
        Self::with(self.config.with_private_nodes())
    }

    pub(crate) fn at(
        urls: &[Url],
        query: &[(String, String)],
        defaults: &ServerOptions,
    ) -> Result<Self, Error> {
        let config = Config::read(urls, query, defaults)?;
        session::check_not_forked()?;
        Ok(Self::with(config))
    }

    fn with(config: Config) -> Self {
        config.warn_about_plaintext();
        Self { store: SequencedStore::new(Zookeeper::new(config.clone())), config }
    }
}

impl fmt::Debug for ZookeeperStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZookeeperStore")
            .field("address", &self.config.address)
            .finish_non_exhaustive()
    }
}

sequenced_store!(ZookeeperStore);
