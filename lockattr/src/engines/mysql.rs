//! The store in a MySQL or MariaDB database.
//!
//! A lock is a row, which stays as long as a claim holds it or waits for it. So a free lock is
//! acquired by inserting its row, and released by deleting it. All other rules are stored procedures,
//! as they are scripts in Redis: no slow client keeps rows locked. The procedures leave out what only
//! a quorum needs: `Waiting::Told` means `Queued`; hints, silence and numbers of other stores are
//! ignored.

mod config;
mod connect;
mod connection;
mod connection_slot;
mod execute;
mod failure;
mod fenced;
mod free;
#[cfg(fuzzing)]
pub mod fuzzed;
#[cfg(unix)]
mod handshake;
mod held_locks;
mod leases;
mod listener;
mod login;
#[cfg(unix)]
mod login_check;
mod mark_done;
#[cfg(unix)]
mod relay;
mod reply;
mod request;
mod requests;
mod schema;
mod send;
#[cfg(unix)]
mod server_key;
mod sessions;
mod tls;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use url::Url;

use crate::lock::server_options::ServerOptions;
use crate::store::url::StoreUrl;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, Sharing, Store, StoreError, Subscriber,
};
use crate::{Error, HeldLock, HeldLocks, Holder, HolderId};
use config::Config;
pub use fenced::{FencedTransaction, MysqlTransaction};
use leases::Leases;
use sessions::Sessions;

/// Longest name of a lock (prefix and key), in bytes.
const LONGEST_NAME: usize = 8192;

/// Locks in a database of MySQL (8.0.29 and later) or MariaDB (10.6 and later).
///
/// The test suite runs on MySQL 9.7 and on MariaDB 10.11; it also passed on MariaDB 11.8. For the
/// other versions, the SQL follows their manuals.
///
/// Made by [`LockManager::connect`](crate::LockManager::connect) from a `mysql://` URL, or by hand:
///
/// ```
/// use lockattr::store::MysqlStore;
///
/// let store = MysqlStore::open("mysql://locker:secret@db.example/shop?connections=4")?;
/// assert!(!format!("{store:?}").contains("secret"));
/// # Ok::<(), lockattr::Error>(())
/// ```
///
/// A lock is a row of `lockattr_v2_locks`, with its holder and the end of its lease by the server's
/// clock. Waiters are rows of `lockattr_v2_queue`. A lock without holder and waiters leaves no row, and
/// what processes leave that end without a release is [deleted](#what-has-ended).
/// An acquisition, a release and a batch of renewals are one round trip and one transaction each.
/// While a connection waits for a reply, requests of other tasks come in; up to 64 of a kind are
/// then sent in one statement. `lockattr_v2_numbers` counts the fencing tokens. In MariaDB it is a
/// sequence, in MySQL a table with one counter for each first byte of the locks' digests. Neither
/// falls behind the server's clock, so a restored backup does not take it back.
///
/// The response timeout limits how long the server may be silent. It does not run while a request
/// waits for the requests before it: an overloaded server makes callers wait, and ends no lease.
///
/// # Tables
///
/// The database must exist. The first client that connects creates the tables and procedures, if
/// its user has the rights `CREATE` and `CREATE ROUTINE`. Otherwise, run
/// [`MIGRATION`](Self::MIGRATION) with the `mysql` client as a user who has them (for MariaDB, with
/// the `mariadb` client). The names of all tables and procedures carry a version. Two versions
/// share no locks, so end all processes of the old one before the first of a new one starts. In
/// either case these rights are enough for locking:
///
/// ```text
/// GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON shop.* TO locker
/// ```
///
/// The row of a key that is [done](Store::mark_done) has a token that no claim has, and a value that
/// ends with ` done=1`.
///
/// With `binlog_format = STATEMENT` no lock can be acquired: use `ROW` (the default) or `MIXED`.
///
/// # Connections
///
/// The store opens its own connections, also with the configuration of the program's client. Each
/// tokio runtime that uses the store has these, and keeps them while they work:
///
/// | locks | idle, and while callers hold locks | while callers wait |
/// |---|---|---|
/// | leases, the default | `connections` (2), and 2 that [listen](#waiting) | the same |
/// | `lock=session` | one for each lock that is held; `connections` (2) stay open without a lock | one more for each caller that waits; at most `max_sessions` (64) for all runtimes together |
///
/// With leases, the number does not depend on how many locks and callers there are, and each
/// connection is opened when a lock first needs it: [`connect`](crate::LockManager::connect) opens
/// one, the first lock opens those that listen. A server with `max_connections = 151`, the default,
/// has room for 37 processes with the default of four.
///
/// # TLS
///
/// With the feature `tls`, all connections of the store are encrypted if the server offers it (all
/// MySQL servers do by default). `ssl-mode` in the URL has the values of MySQL's own clients:
///
/// | `ssl-mode` | connection | the server's certificate |
/// |---|---|---|
/// | `disabled`, the default for a server on this machine | plaintext | |
/// | `preferred`, the default for another machine | TLS if the server offers it | any |
/// | `required` | TLS | any, or with `ca` one that is signed by it |
/// | `verify_ca`, with `ca` | TLS | signed by `ca` |
/// | `verify_identity`, the default with `ca` | TLS | signed by `ca`, or by an authority of the system, and it names the URL's host |
///
/// `ca`, `client_cert` and `client_key` name PEM files. Only `verify_identity` keeps someone on the
/// network from answering in the server's place. A plaintext connection to another machine is
/// reported once in the log.
///
/// A user of `caching_sha2_password`, MySQL's default, that the server does not know since its start
/// sends the password itself: through TLS, or encrypted with a key that the server sends, as a program that
/// answers in its place could. So without TLS, `preferred` refuses that to another machine, as MySQL's
/// own clients do without `get-server-public-key`. `disabled` says that the network is your own.
/// MariaDB's `ed25519` and `parsec` are supported too; `mysql_clear_password` and `dialog` are not.
///
/// A task relays each encrypted connection inside the process, so that the store neither uses nor
/// installs a cryptography provider for the process, each connection in plaintext to another machine, so
/// that nothing a server asks there can block the process, and those by `ed25519` or `parsec`. It needs
/// Linux, Android or macOS. Other connections to this machine are not relayed; each begins with a login
/// for a trial. A store
/// [from `Opts`](Self::from_opts) has the TLS of these `Opts` instead, and without TLS there they count
/// as `disabled`.
///
/// # Passwords that rotate
///
/// A [credentials provider](ServerOptions::credentials) is asked for each connection that the store
/// opens. If the server refuses the answer, the provider is asked again, and a different answer is
/// tried once. MySQL does not end connections whose password has changed, so they live on until they
/// fail.
///
/// # Waiting
///
/// MySQL cannot push messages to a client. So with its first lock, each process opens two more
/// connections for each runtime. One sleeps on the server, in a query that the next message interrupts (`KILL QUERY`).
/// The other marks the process as listening (`GET_LOCK`), and reads the messages. A process that
/// has died is passed over at once, and one that is stopped or cut off within its TTL (at most 15
/// seconds). Each waiter sends a request three times in that time.
///
/// A proxy must forward each connection as it is. One that shares server connections between its
/// clients, or greets them as other connections than the server's, is refused when a manager
/// connects.
///
/// All processes should log in as the same user. If the users differ and the waking one lacks the
/// right `CONNECTION_ADMIN`, the server refuses the `KILL`. Then no message is lost, but a waiter
/// that is granted a lock learns of it after up to 10 seconds instead of at once. Its lease begins
/// at the hand-off and may end before its holder learns of it, so choose a TTL longer than that.
///
/// While nothing changes, each connection checks the server once per `heartbeat`, and the sleeping
/// query restarts every 10 seconds. The server ends a connection that sends nothing for three of
/// these intervals.
///
/// # What has ended
///
/// Leases that were not released, marks of done keys, queue entries of processes that send no more
/// requests, and messages for processes that are gone: they are deleted within two minutes, as long
/// as any process is connected, whatever it does. Each connection asks when it begins and then with
/// each `heartbeat`, every 30 seconds at least, whether a sweep is due. The server's clock
/// and the row of `lockattr_v2_sweep` let one begin every 40 seconds, and one connection at a time
/// take a step of it: it reads 500 locks, deletes up to 100, passes over rows that are in use, and
/// pauses for as long as that took. A user that may not delete rows gets a warning in the log, once,
/// and leaves the sweeps to other processes.
///
/// # Durability and replicas
///
/// A granted lock is as durable as the server's commits. With `innodb_flush_log_at_trx_commit`
/// other than 1, a crash of the machine can lose a lock, which is then granted again. The same
/// happens after a failover, with asynchronous replication, to a replica that had not received the
/// lock. Its holder gets [`Lost`](crate::Error::Lost) from its next renewal. [Fencing
/// tokens](crate::FencingToken) still grow, as long as the servers' clocks differ by less than the
/// failover takes.
///
/// The URL must lead to one primary. With Galera or group replication, send all requests to one
/// node: `GET_LOCK` is local to a node, and two nodes that grant the same lock find the conflict
/// only at commit, where one of them fails.
///
/// # Locks that belong to connections
///
/// With `?lock=session` a lock is not a row but a `GET_LOCK` on a connection of its own. It has no
/// TTL, and ends with its connection, as soon as the server notices. A waiter waits on the server,
/// on a connection of its own, in the server's order. Only a single key can be locked, exclusively:
/// shared locks, permits and several keys are [`InvalidOptions`](crate::Error::InvalidOptions).
///
/// * Each holder and each waiter is a connection. A store opens at most `max_sessions` (64): with the
///   default, two processes fit in a server with 151 connections, the server's default. Further
///   callers wait in this process for a connection, in order, whatever their keys. So callers that
///   hold a lock and want a second one can wait for each other's connections until their `wait` ends:
///   set `max_sessions` to more than the locks that a process holds at once. Asking who holds a lock,
///   taking one by force and leaving the server's queue each need one more connection for a moment.
/// * A connection without a lock stays open for the next caller until a `heartbeat` finds it idle;
///   `connections` of them are kept.
/// * A lock is lost with its connection. The holder learns of it at the next renewal, a third of
///   the TTL later, or when the TTL ends without a renewal. If the network fails silently, the
///   server may need longer to notice, and does not grant the lock until then.
/// * `hold_at_least` ends with its process. `linger` ends with the first caller in that process
///   that asks. The server does not report who holds a lock, only that it is held.
/// * [`force_release`](crate::LockManager::force_release) ends the connection that has
///   the holder's id, if it still holds the lock. Ending another user's connection needs `CONNECTION_ADMIN`.
///   [`held_locks`](crate::LockManager::held_locks) is refused, because the server knows digests,
///   not names.
/// * A process that is stopped keeps its locks for about a TTL: the server then ends their
///   connections.
/// * `GET_LOCK` has no counter. Fencing tokens come from `UUID_SHORT()`, which counts without a
///   write while the server runs, and from the row of `lockattr_v2_session_numbers`, so that they
///   grow across restarts. The servers of one database need different values of `server_id`, modulo
///   256. Tokens of leases come from another counter, so a key must not change its kind of lock back
///   and forth. A server that is `read_only` grants no lock. After a switch to another primary and
///   back within a `heartbeat`, end the sessions of this one.
pub struct MysqlStore {
    config: Arc<Config>,
    locks: Locks,
}

enum Locks {
    Leases(Leases),
    Sessions(Arc<Sessions>),
}

impl MysqlStore {
    /// The SQL that creates the tables and procedures, for the `mysql` client.
    ///
    /// ```
    /// use lockattr::store::MysqlStore;
    ///
    /// # fn run() -> std::io::Result<()> {
    /// // mysql shop < lockattr.sql
    /// std::fs::write("lockattr.sql", MysqlStore::MIGRATION)?;
    /// # Ok(())
    /// # }
    /// # let _ = run;
    /// ```
    pub const MIGRATION: &'static str = schema::MIGRATION;

    /// Opens the store that `url` names, `mysql://user:password@host:3306/database`.
    ///
    /// The query may set `connections`, `connect_timeout`, `response_timeout`, `heartbeat`,
    /// `ssl-mode`, `ca`, `client_cert`, `client_key`, `lock=session` and, with that, `max_sessions`. Does not contact the server.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the URL is invalid.
    pub fn open(url: &str) -> Result<Self, Error> {
        let StoreUrl { urls, query } = StoreUrl::parse(url)?;
        Self::at(urls, &query, ServerOptions::default())
    }

    /// Makes a store with the configuration of the program's own client: its host or socket, login,
    /// TLS settings, compression and hooks.
    ///
    /// The store opens its own connections, each of which it must have to itself, so it takes the
    /// configuration and not a `Pool`. A pool does not return its configuration, but each of its
    /// connections does: `pool.get_conn().await?.opts().clone()`. The store replaces these settings:
    /// `tcp_keepalive`, `max_allowed_packet`, `wait_timeout` and `client_found_rows`. After the
    /// statements of `init` and `setup` it runs its own, so that theirs do not change how it locks.
    /// Does not contact the server.
    ///
    /// ```
    /// use lockattr::store::{MysqlStore, ServerOptions};
    /// use mysql_async::OptsBuilder;
    ///
    /// let opts = OptsBuilder::default()
    ///     .ip_or_hostname("db.example")
    ///     .user(Some("locker"))
    ///     .pass(Some("secret"))
    ///     .db_name(Some("shop"));
    /// let store = MysqlStore::from_opts(opts, ServerOptions::new())?;
    /// assert!(!format!("{store:?}").contains("secret"));
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if `opts` names no database, or an option is out of range.
    pub fn from_opts(
        opts: impl Into<mysql_async::Opts>,
        options: ServerOptions,
    ) -> Result<Self, Error> {
        Ok(Self::with(Config::of_opts(opts.into(), options)?))
    }

    /// The same store with locks that [belong to
    /// connections](#locks-that-belong-to-connections), as `lock=session` makes them. It opens at
    /// most `max_sessions` connections for them (1 to 10,000).
    ///
    /// ```
    /// use lockattr::store::{MysqlStore, ServerOptions};
    ///
    /// let opts = mysql_async::Opts::from_url("mysql://locker:secret@db.example/shop").unwrap();
    /// let store = MysqlStore::from_opts(opts, ServerOptions::new())?.with_session_locks(64)?;
    /// # let _ = store;
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if `max_sessions` is out of range.
    pub fn with_session_locks(self, max_sessions: usize) -> Result<Self, Error> {
        Ok(Self::with(self.config.with_sessions(max_sessions)?))
    }

    pub(crate) fn at(
        urls: Vec<Url>,
        query: &[(String, String)],
        defaults: ServerOptions,
    ) -> Result<Self, Error> {
        Ok(Self::with(Config::read(urls, query, defaults)?))
    }

    fn with(config: Config) -> Self {
        let config = Arc::new(config);
        let locks = match config.sessions {
            false => Locks::Leases(Leases::new(&config)),
            true => Locks::Sessions(Sessions::new(config.clone())),
        };
        Self { config, locks }
    }
}

/// Why a session lock cannot outlive its process.
const ENDS_WITH_THE_SESSION: &str = "with `lock=session`, a lock ends with its connection, so no key stays done when the process \
     ends: leave `lock=session` out of the URL and lock by leases";

impl Store for MysqlStore {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        match &self.locks {
            Locks::Leases(leases) => leases.acquire(request).await,
            Locks::Sessions(sessions) => sessions.acquire(request).await,
        }
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        match &self.locks {
            Locks::Leases(leases) => leases.subscribe(subscriber),
            Locks::Sessions(sessions) => sessions.subscribe(subscriber),
        }
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        match &self.locks {
            Locks::Leases(leases) => leases.renew(renewals).await,
            Locks::Sessions(sessions) => {
                join_all(renewals.iter().map(|renewal| sessions.renew(renewal))).await
            }
        }
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        match &self.locks {
            Locks::Leases(leases) => leases.release(releases).await,
            Locks::Sessions(sessions) => {
                join_all(releases.iter().map(|release| sessions.release(release))).await
            }
        }
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        match &self.locks {
            Locks::Leases(leases) => leases.holder(key).await,
            Locks::Sessions(sessions) => sessions.holder(key).await,
        }
    }

    async fn held_locks(&self, prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        Ok(self.list_held_locks(prefix).await?.locks)
    }

    async fn list_held_locks(&self, prefix: &str) -> Result<HeldLocks, StoreError> {
        match &self.locks {
            Locks::Leases(leases) => leases.held_locks(prefix).await,
            Locks::Sessions(_) => {
                let sentence = "the server knows session locks by a digest, not by name: look up the \
                                holder of one lock by its key, or leave `lock=session` out of the \
                                URL and lock by leases";
                Err(StoreError::new(sentence).not_sent())
            }
        }
    }

    async fn force_release(&self, key: &LockKey, holder: &HolderId) -> Result<bool, StoreError> {
        match &self.locks {
            Locks::Leases(leases) => leases.force_release(key, *holder).await,
            Locks::Sessions(sessions) => sessions.force_release(key, *holder).await,
        }
    }

    async fn mark_done(
        &self,
        claim: &Claim,
        lasts: Duration,
    ) -> Result<ReleaseOutcome, StoreError> {
        match &self.locks {
            Locks::Leases(leases) => leases.mark_done(claim, lasts).await,
            Locks::Sessions(_) => Err(StoreError::new(ENDS_WITH_THE_SESSION).not_sent()),
        }
    }

    fn refuses_done(&self) -> Option<String> {
        self.config.sessions.then(|| ENDS_WITH_THE_SESSION.to_owned())
    }

    fn shows_values(&self) -> bool {
        !self.config.sessions
    }

    fn address(&self) -> Option<String> {
        Some(self.config.address.clone())
    }

    fn notes_departures(&self) -> bool {
        true
    }

    fn needs_io(&self) -> bool {
        true
    }

    async fn ping(&self) -> Result<(), StoreError> {
        match &self.locks {
            Locks::Leases(leases) => leases.ping().await,
            Locks::Sessions(sessions) => sessions.ping().await,
        }
    }

    fn refuses(&self, key: &LockKey) -> Option<String> {
        (key.name().len() > LONGEST_NAME)
            .then(|| format!("prefix and key have more than {LONGEST_NAME} bytes"))
    }

    fn refuses_claim(&self, claim: &Claim) -> Option<String> {
        let alone = claim.keys().len() == 1 && claim.sharing() == Sharing::Exclusive;
        (self.config.sessions && !alone).then(|| {
            "with `lock=session`, MySQL locks one key alone and exclusively: leave `lock=session` out \
             of the URL for shared locks, permits and several keys"
                .into()
        })
    }
}

impl fmt::Debug for MysqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlStore")
            .field("address", &self.config.address)
            .field("connections", &self.config.timing.database_connections())
            .finish_non_exhaustive()
    }
}
