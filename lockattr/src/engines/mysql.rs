//! The store in a MySQL or MariaDB database.
//!
//! The rules are procedures in the database, as they are scripts in Redis: what is asked is one
//! `CALL`, in one trip, and no client keeps rows locked while it is slow. What only a quorum asks for
//! is not among them: who is to be told waits in the queue, and hints, silence and numbers of other stores
//! are passed over.

mod config;
mod connect;
#[cfg(fuzzing)]
pub mod fuzzed;
mod held_locks;
mod leases;
mod listener;
mod request;
mod schema;
mod session;
mod sessions;
mod worker;

use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;
use url::Url;

use crate::lock::settings::ServerSettings;
use crate::store::url::StoreUrl;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, Sharing, Store, StoreError, Subscriber,
};
use crate::{Error, HeldLock, Holder};
use config::Config;
use leases::Leases;
use sessions::Sessions;

/// Longest name of a lock: prefix and key.
const LONGEST_NAME: usize = 8192;

/// Locks in a database of MySQL (8.0 and later) or MariaDB (10.6 and later).
///
/// The same tests run on MySQL 9.7 and on MariaDB 10.11. On the older and newer versions of each it is
/// written in the SQL that these have by their manuals.
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
/// A lock is a row of `lockattr_locks`, with its holder and the end of its lease by the server's
/// clock. Those who wait are rows of `lockattr_line`; of a lock that no process has or waits for, nothing
/// is left. What asks and changes is a stored procedure, so an acquisition, a release and a batch of
/// renewals are one trip and one transaction each. For each of the first bytes of the locks' digests,
/// `lockattr_fence` counts the fencing tokens, which never fall behind the server's clock: a restored
/// backup does not take them back.
///
/// # The tables
///
/// The database must be there. The tables and procedures are made by the first client that connects, if its user has
/// the rights (`CREATE` and `CREATE ROUTINE`); else by an administrator, with the `mysql` client, from
/// [`MIGRATION`](Self::MIGRATION). They bear a version in their names where they can change, so that
/// an older process works on beside a newer one. In either case a user of these rights is enough:
///
/// ```text
/// GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON shop.* TO locker
/// ```
///
/// With `binlog_format = STATEMENT` nothing can be locked: `ROW`, MySQL's default, or `MIXED`.
///
/// # Waiters
///
/// MySQL cannot tell a client anything. So each process has two connections more (for each runtime):
/// one sleeps on the server, in a query that the next message interrupts (`KILL QUERY`); the other says
/// that somebody listens (`GET_LOCK`), and reads what came. A process that dies is passed over at
/// once. A proxy that shares connections between clients must not stand in between.
///
/// Every process should log in as the same user. Where the server refuses the `KILL`, because the users
/// differ and the one that wakes has not the right `CONNECTION_ADMIN`, nothing is lost: a waiter looks
/// by itself, and is notified after at most 10 seconds, instead of at once. The lease that it is given
/// begins at the hand-off, so a TTL should be longer than that then: else it may end before anybody
/// knows of it.
///
/// While nothing happens, each connection is asked once per `heartbeat` whether it is still there, and
/// the sleeping query is begun anew every 10 seconds; no process asks for a lock. What came for a process
/// that is gone (a row of `lockattr_news`) is removed with the next `heartbeat` of any other, or when
/// the next one begins to listen.
///
/// # Durability and replicas
///
/// What was granted is as durable as the server's commits are. With
/// `innodb_flush_log_at_trx_commit` other than 1, a crash of the machine can forget a lock, which is
/// then granted again; so can a failover to a replica that had not received it, with asynchronous
/// replication. Its holder is notified [`Lost`](crate::Error::Lost) by its next renewal.
/// [Fencing tokens](crate::FencingToken) grow over that as long as the servers' clocks are no further
/// apart than it takes.
///
/// The URL must lead to one primary. With Galera or group replication, send all of it to one node:
/// `GET_LOCK` is each node's own, and two nodes that grant at the same time find out only at commit,
/// where one of them fails.
///
/// # Locks that belong to connections
///
/// With `?lock=session` a lock is no row but a `GET_LOCK` of a connection of its own: it has no TTL, and
/// ends with its connection, however long that takes to be noticed by the server. A waiter waits on
/// the server, on a connection of its own, in the order that the server keeps. A key alone, exclusively:
/// shared locks, permits and several keys are [`InvalidOptions`](crate::Error::InvalidOptions).
///
/// * Each holder and each waiter is a connection, which the server must allow (`max_connections`);
///   `connections` is how many are kept while no process needs them.
/// * A connection that is lost is a lock that is lost: its holder learns so by the next renewal, a third
///   of the TTL later, or when the TTL is over without one. The server may need longer to notice, if
///   the network is gone without a word, and grants the lock to no process until then.
/// * `hold_at_least` ends with its process, `linger` with the first caller that asks in it, and the server does not
///   tell the holder of a lock: only that it is held.
/// * [`force_release`](crate::LockManager::force_release) ends the connection that has the lock, for which
///   a user other than the holder's needs `CONNECTION_ADMIN`;
///   [`held_locks`](crate::LockManager::held_locks) is refused, because the server knows digests and no
///   names.
/// * `GET_LOCK` counts nothing: the fencing tokens do, in `lockattr_fence`, one write each.
pub struct MysqlStore {
    config: Arc<Config>,
    locks: Locks,
}

/// What a lock is.
enum Locks {
    Leases(Leases),
    Sessions(Arc<Sessions>),
}

impl MysqlStore {
    /// What makes the tables and procedures, for the `mysql` client.
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

    /// The store that `url` names, `mysql://user:password@host:3306/database`; its query may set
    /// `connections`, `connect_timeout`, `response_timeout`, `heartbeat`, and `lock=session`. Does not
    /// contact the server.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the URL makes no sense.
    pub fn open(url: &str) -> Result<Self, Error> {
        let StoreUrl { urls, query } = StoreUrl::parse(url)?;
        Self::at(urls, &query, ServerSettings::default())
    }

    pub(crate) fn at(
        urls: Vec<Url>,
        query: &[(String, String)],
        defaults: ServerSettings,
    ) -> Result<Self, Error> {
        let config = Arc::new(Config::read(urls, query, defaults)?);
        let locks = match config.sessions {
            false => Locks::Leases(Leases::new(&config)),
            true => Locks::Sessions(Sessions::new(config.clone())),
        };
        Ok(Self { config, locks })
    }
}

impl Store for MysqlStore {
    async fn acquire(&self, asked: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        match &self.locks {
            Locks::Leases(leases) => leases.acquire(asked).await,
            Locks::Sessions(sessions) => sessions.acquire(asked).await,
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
                join_all(releases.iter().map(|releasing| sessions.release(releasing))).await
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
        match &self.locks {
            Locks::Leases(leases) => leases.held_locks(prefix).await,
            Locks::Sessions(_) => {
                let sentence = "the locks of sessions have no names at the server, which keeps digests \
                                of them: look up the holder of one lock by its key, or leave `lock=session` \
                                out of the URL and lock by leases";
                Err(StoreError::new(sentence).not_sent())
            }
        }
    }

    async fn force_release(&self, key: &LockKey) -> Result<bool, StoreError> {
        match &self.locks {
            Locks::Leases(leases) => leases.force_release(key).await,
            Locks::Sessions(sessions) => sessions.force_release(key).await,
        }
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
            .field("connections", &self.config.timing.connections())
            .finish_non_exhaustive()
    }
}
