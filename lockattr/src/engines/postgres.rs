//! The store in a PostgreSQL database.
//!
//! A lock that is held or waited for is a row with an end by the server's clock. A free lock is
//! acquired by a plain insert and released by a plain deletion (`statements.rs`). Everything else is
//! a function in the database: the rules of the Redis scripts, in PL/pgSQL.

mod acquire;
mod acquire_reply;
mod advisory;
mod client_settings;
mod config;
mod connect;
mod connection_slot;
mod driver;
mod execute;
mod failure;
mod fence_in;
#[cfg(fuzzing)]
pub mod fuzzed;
mod heartbeat;
mod held_locks;
mod hosts;
mod libpq;
mod listener;
mod lock_kind;
mod mark_done;
mod negotiation;
mod parameters;
mod pooler;
mod queries;
mod release;
mod requests;
mod schema;
mod send;
mod session;
mod statements;
mod tls;
mod transaction;
mod transaction_waiters;
mod unanswered;
mod unproven;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use url::Url;

use super::contended::Contended;
use crate::lock::server_options::ServerOptions;
use crate::store::url::StoreUrl;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, Sharing, Store, StoreError, Subscriber,
};
use crate::{Error, HeldLock, HeldLocks, Holder, HolderId};
pub use advisory::PostgresSessionStore;
use config::Config;
use connect::By;
use connection_slot::ConnectionSlot;
use held_locks::{ForceRelease, HeldLocksQuery};
use listener::Listener;
use lock_kind::LockKind;
pub(crate) use lock_kind::open;
use mark_done::MarkDone;
use queries::{HolderQuery, Queries};
use requests::{DatabaseReply, DatabaseRequest};
use schema::Schema;
pub use transaction::PostgresTransaction;
pub(crate) use transaction::{InTransactions, TAKEN, TOO_STRICT, in_transactions, wait_ended};
use unanswered::Unanswered;

/// Longest name, in bytes. A longer one does not fit an index.
const LONGEST_NAME: usize = 2_000;

/// Locks in a PostgreSQL database (12 and later), over a small pool of connections.
///
/// Made by [`LockManager::connect`](crate::LockManager::connect) from a `postgres://` or
/// `postgresql://` URL, or by hand. A lock is a row in a table, whose lease ends by the server's
/// clock. A free lock is acquired by one `INSERT` and released by one `DELETE`. Requests of many
/// callers share a statement, so they share its commit. A caller that cannot acquire joins the wait
/// queue, also a table, by calling a function in the database. The release hands the lock to the
/// first waiter, and a `NOTIFY` tells it so.
///
/// # URL
///
/// `postgres://user:password@host:5432/database?name=value`, with several hosts separated by
/// commas, or the directory of a Unix socket as `%2Fvar%2Frun%2Fpostgresql`. The query may set
/// `schema`, `connections`, `connect_timeout`, `response_timeout` and `heartbeat`, and these
/// parameters of libpq: `host`, `hostaddr`, `port`, `user`, `password`, `dbname`, `options`,
/// `application_name`, `sslmode`, `sslrootcert`, `sslcert`, `sslkey`, `sslnegotiation`,
/// `channel_binding`, `target_session_attrs`, `load_balance_hosts`, `keepalives`,
/// `keepalives_idle`, `keepalives_interval`, `keepalives_retries` and `tcp_user_timeout`. Of
/// several hosts, the store uses the one that accepts writes, unless `target_session_attrs` says
/// otherwise.
///
/// A process has `connections` (2) sessions for each runtime that locks. One more listens, from the
/// first time that a caller has to wait. When a session is opened, at most once a minute, three more
/// briefly probe for a pooler. So the server, or the pool, needs room for `connections` + 3.
///
/// # TLS
///
/// It needs lockattr's feature `tls`. `sslmode` is that of libpq:
///
/// | `sslmode` | encrypted | the server's certificate |
/// |---|---|---|
/// | `disable` | no | |
/// | `prefer`, the default | if the server has TLS | any |
/// | `require` | yes | any |
/// | `verify-ca`, with `sslrootcert` | yes | signed by a trusted authority |
/// | `verify-full` | yes | signed by a trusted authority, for this host |
///
/// Only `verify-full` protects from a machine in between. `sslrootcert` (or `ca`) names a PEM file
/// with the trusted authorities. Without it, `verify-full` trusts those of the system, also with
/// `sslrootcert=system`, and `verify-ca` is refused: any host can have a certificate of those. A file is never ignored: with one, the default is `verify-full`, and
/// `prefer` and `require` verify like `verify-ca`. `sslcert` and `sslkey` (or `client_cert` and
/// `client_key`) name the client's certificate and key. The files are read when the store is
/// opened.
///
/// * The name to verify is that of `host`, also if `hostaddr` gives the address to connect to. It
///   must be in the certificate's `subjectAltName`: unlike libpq, the `CN` does not count. A host that
///   no certificate can name, such as `127.1`, is refused with `verify-full` only.
/// * A password is bound to the connection (SCRAM-SHA-256-PLUS) if the server offers it;
///   `channel_binding=require` demands that.
/// * `prefer` falls back to plaintext only if the server says that it has no TLS. A failed handshake
///   is an error. Plaintext to another machine is logged once, as a warning before the login, unless
///   the URL says `sslmode=disable`. Without that, no password and no `md5` of it goes there: unlike
///   libpq, the store refuses a server that denies TLS and asks for either. `scram-sha-256`, which
///   proves the password, is not refused.
/// * `sslnegotiation=direct` saves a round trip. It needs PostgreSQL 17, and `require` at least.
/// * As in libpq, `sslmode` does not concern a Unix socket. `allow` is refused.
///
/// # Passwords that rotate
///
/// With [`ServerOptions::credentials`] or
/// [`LockManagerBuilder::credentials`](crate::LockManagerBuilder::credentials), the store asks your
/// function for the password whenever it opens a connection. It has `connect_timeout` to answer.
/// The server does not check the password of an open session again, so a new password takes effect
/// when a session is opened for another reason.
///
/// If a session is cut, requests in flight on it have an unknown outcome. An acquire then asks again
/// over a new session, within its `wait`. It cannot acquire twice, because the store knows its owner
/// token. With `wait=0` or `retry(0)`, it returns the error.
///
/// # Pools
///
/// The store does not take connections from a pool (`deadpool-postgres`, `sqlx`). Its sessions have
/// prepared statements, advisory locks and `LISTEN`, and carry the requests of all callers at once,
/// so it would never give them back. Instead, it takes the pool's configuration and opens its own:
/// `connections` (2, or 1 if you say so) and one that listens.
///
/// With `deadpool-postgres`, give [`from_config`](Self::from_config) the two values from which you
/// made the pool's `Manager` (`deadpool_postgres::Config::get_pg_config` returns the first):
///
/// ```ignore
/// let config = settings.pg.get_pg_config()?;
/// let store = PostgresStore::from_config(config, tls.clone(), ServerOptions::new())?;
/// let pool = settings.pg.create_pool(Some(Runtime::Tokio1), tls)?;
/// ```
///
/// With sqlx 0.9, the pool's options return a URL, with the password and the files for TLS. It
/// leaves out `options` and certificates that are not files:
///
/// ```ignore
/// use sqlx::ConnectOptions;
///
/// let url = pool.connect_options().to_url_lossy();
/// let manager = LockManager::connect(url.as_str()).await?;
/// ```
///
/// To lock inside one of the pool's transactions, use
/// [`LockManager::acquire_in`](crate::LockManager::acquire_in).
///
/// # Tables
///
/// The first connection creates `lockattr_locks`, `lockattr_holders`, `lockattr_queue`,
/// `lockattr_sweep`, the sequences `lockattr_counter` and `lockattr_counter_base`, and functions whose names begin with
/// `lockattr_`, in the schema `public`, or in the one that `schema=` (or
/// [`ServerOptions::schema`]) names. That one is created too, if it is missing. If the user lacks the
/// rights, run what [`migration`](Self::migration) returns as a user who has them, and grant these:
///
/// ```text
/// grant connect on database shop to app;
/// grant usage on schema locks to app;
/// grant select, insert, update, delete
///     on locks.lockattr_locks, locks.lockattr_holders, locks.lockattr_queue, locks.lockattr_sweep to app;
/// grant usage, select, update
///     on sequence locks.lockattr_counter, locks.lockattr_counter_base to app;
/// grant execute on all routines in schema locks to app;
/// ```
///
/// The first and the last are everyone's unless they were revoked from `public`. A later version of
/// lockattr may bring functions of new names: run its migration, and grant them again. With
/// `lock=session`, the right to connect is enough.
///
/// Every table, function, sequence and channel is named with its schema, so the search path of a
/// user, of the database or of the URL's `options` does not matter: two schemas are two sets of
/// locks, and all users who name one share its tables. If the URL names no schema, and another
/// schema than `public` on the user's search path has lockattr's tables, connecting fails, and the
/// error says which `schema=` to write.
///
/// The row of a key that is [done](Store::mark_done) has a token that no claim has, and a value that
/// ends with ` done=1`.
///
/// A row is deleted when its lock is released, and what processes leave that end without a release is
/// [deleted](#what-has-ended), so only the sequences stay. The names of the functions end in their
/// version. All programs that lock in a database must use the same version.
///
/// As in every table of PostgreSQL, a deleted or updated row takes up space until no transaction can
/// see it. A key that is locked a thousand times a second becomes slow while another transaction of
/// the server keeps a snapshot for minutes (`REPEATABLE READ`, a long report, `pg_dump`): a minute
/// makes an acquisition about five times slower. A lock that is handed off is updated in place, and
/// suffers less than one that is released and acquired again.
///
/// # What has ended
///
/// Leases that were not released, marks of done keys, shared results, and entries of dead waiters: they
/// are deleted within two minutes, as long as any process is connected, whatever it does. Each
/// connection asks when it begins and then with each `heartbeat`, every 30 seconds at least,
/// whether a sweep is due. The server's clock and the row of `lockattr_sweep` let one begin every 40
/// seconds, and one connection at a time take a step of it: it reads 500 locks, deletes those that
/// have ended, passes over rows that are in use, and pauses for as long as that took. A user that may
/// not delete rows gets a warning in the log, once, and leaves the sweeps to other processes.
///
/// # Durability
///
/// A lock is as durable as the database's commits. With `synchronous_commit = on`, the default, it
/// survives a crash, and its holder renews it when the server is back. With `off`, a lock granted
/// in the last moments before a crash may be granted again. So may, after a failover to an
/// asynchronous standby, a lock that the standby had not received. A synchronous standby has all
/// locks (`synchronous_commit` is `on` or stronger, and `synchronous_standby_names` is set). In
/// each case [fencing tokens](crate::FencingToken) grow, as long as the servers' clocks differ by
/// less than the failover takes: each session raises the counter to the clock when it begins.
///
/// An entry in the wait queue is not synced to the disk, because its process sends it again.
///
/// # Dead waiters
///
/// A waiter's entry ends after a TTL (at least 1 s, at most 15 s) unless its process sends another
/// request, which it does after each third of that. In addition, a waiter counts as dead as soon as
/// the server has seen the connection close over which it listens. So a killed process is mostly
/// passed over within milliseconds. A process that was stopped, or whose machine vanished silently,
/// costs one TTL, however many waiters it has.
///
/// # Poolers
///
/// The store owns a session for as long as it is connected: the session listens, holds advisory
/// locks, and has prepared statements. So a pooler (`pgbouncer`) must run with
/// `pool_mode = session`.
///
/// # Limits
///
/// * A key has at most 2,000 bytes with its prefix.
/// * PostgreSQL commits transactions that notify one at a time, across all databases of a server. A
///   hand-off therefore notifies in a second transaction, which does not wait for the disk. Each
///   session that listens makes every such commit slower, so a process listens only while a caller
///   waits or while it hands a lock to its own callers.
/// * [`held_locks`](crate::LockManager::held_locks) does not list a lock that a
///   [transaction](PostgresTransaction) holds, and `force_release` does not take it.
/// * A [`RedlockStore`](crate::store::RedlockStore) cannot use it: the server grants a waiter the
///   lock instead of notifying it to ask.
///
/// ```
/// use lockattr::store::PostgresStore;
///
/// let store = PostgresStore::open("postgres://app:secret@db.example/shop?connections=4")?;
/// assert!(!format!("{store:?}").contains("secret"));
/// # Ok::<(), lockattr::Error>(())
/// ```
pub struct PostgresStore {
    slots: Box<[Arc<ConnectionSlot<Queries>>]>,
    listener: Arc<ConnectionSlot<Listener>>,
    contended: Contended,
    unanswered: Unanswered,
    address: String,
}

impl PostgresStore {
    /// The tables and functions that the store creates in a schema when it first connects, in SQL.
    ///
    /// For databases whose users may not create them: run it as a user who may. It can run any
    /// number of times, beside programs that lock. It creates the schema too, if it is missing.
    ///
    /// ```
    /// use lockattr::store::PostgresStore;
    ///
    /// let script = PostgresStore::migration("locks")?;
    /// assert!(script.contains(r#"create table if not exists "locks".lockattr_locks"#));
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if no schema can have this name.
    pub fn migration(schema: &str) -> Result<String, Error> {
        Ok(Schema::new(Some(schema))?.migration())
    }

    /// Opens the store that `url` names. Does not contact the server.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the URL is invalid.
    pub fn open(url: &str) -> Result<Self, Error> {
        let StoreUrl { urls, mut query } = StoreUrl::parse(url)?;
        if LockKind::take(&mut query)? == Some(LockKind::Session) {
            let sentence =
                "`PostgresStore` does not support `lock=session`: open a `PostgresSessionStore`";
            return Err(Error::InvalidOptions(sentence.into()));
        }
        Self::at(&urls, &query, ServerOptions::default())
    }

    /// Makes a store from the settings and the TLS of the program's own client, for what a URL
    /// cannot say. Does not contact the server.
    ///
    /// `tls` is what the program gives `tokio_postgres` itself, such as `NoTls`, or a connector of
    /// `tokio-postgres-rustls` or `postgres-native-tls`. The client's `sslmode` counts, and `NoTls`
    /// counts as `disable`. The store opens its own connections with both: see [Pools](#pools).
    ///
    /// The timeouts are those of `options`, also for connecting. What `config` leaves out is as in a
    /// URL: the application name `lockattr`, keepalives that find a vanished server, and of several
    /// hosts the one that accepts writes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if a value in `options` is out of range.
    ///
    /// ```
    /// use lockattr::LockManager;
    /// use lockattr::store::{PostgresStore, ServerOptions};
    ///
    /// let config: tokio_postgres::Config = "host=db.example dbname=shop user=app".parse()?;
    /// let options = ServerOptions::new().connections(1);
    /// let store = PostgresStore::from_config(config, tokio_postgres::NoTls, options)?;
    /// let manager = LockManager::builder().store(store).build()?;
    /// # let _ = manager;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_config<T>(
        config: tokio_postgres::Config,
        tls: T,
        options: ServerOptions,
    ) -> Result<Self, Error>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        Ok(Self::over(Config::of(config, Arc::new(By(tls)), options)?))
    }

    pub(crate) fn at(
        urls: &[Url],
        query: &[(String, String)],
        defaults: ServerOptions,
    ) -> Result<Self, Error> {
        Ok(Self::over(Config::read(urls, query, defaults)?))
    }

    fn over(config: Config) -> Self {
        let queries = Arc::new(Queries(config.schema.clone()));
        let listener = Arc::new(Listener::of(&config.schema));
        let connections = 0..config.timing.database_connections();
        Self {
            slots: connections
                .map(|_| ConnectionSlot::new(config.clone(), queries.clone()))
                .collect(),
            contended: Contended::new(),
            unanswered: Unanswered::default(),
            address: config.address.clone(),
            listener: ConnectionSlot::new(config, listener),
        }
    }
}

/// Whether a plain statement may acquire and release the lock of this claim.
fn is_plain(claim: &Claim) -> bool {
    claim.keys().len() == 1 && claim.sharing() == Sharing::Exclusive
}

fn held(reply: &DatabaseReply) -> Result<bool, StoreError> {
    match reply {
        DatabaseReply::Held(held) | DatabaseReply::Deleted(Some(held)) => Ok(*held),
        _ => Err(unexpected_reply()),
    }
}

fn unexpected_reply() -> StoreError {
    StoreError::new("the server sent an unexpected reply")
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Store for PostgresStore {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        match self.acquire_free(request).await? {
            Some(acquired) => Ok(acquired),
            None => self.acquire_contended(request).await,
        }
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.listener.role.notifications.subscribers.add(subscriber);
    }

    fn watch_for_waiters(&self, claim: &Claim, until: Instant) {
        self.listener.watch_for_waiters(claim.token().subscriber(), until);
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        let requests = renewals.iter().map(|renewal| {
            let request = match renewal.claim.sharing() {
                Sharing::Exclusive => DatabaseRequest::Renew(renewal.clone()),
                _ => DatabaseRequest::RenewShared(renewal.clone()),
            };
            (renewal.claim.key(), request)
        });
        let replies = self.run_each(requests.collect()).await.into_iter();
        let held = replies.map(|reply| held(&reply?));
        held.map(|held| Ok(if held? { RenewOutcome::Renewed } else { RenewOutcome::NotHeld }))
            .collect()
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        let held = self.release_each(releases).await.into_iter();
        held.map(|held| Ok(if held? { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld }))
            .collect()
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        self.slot(key).query(&HolderQuery(key.name())).await
    }

    async fn held_locks(&self, prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        Ok(self.list_held_locks(prefix).await?.locks)
    }

    async fn list_held_locks(&self, prefix: &str) -> Result<HeldLocks, StoreError> {
        self.slots[0].query(&HeldLocksQuery(prefix)).await
    }

    async fn force_release(&self, key: &LockKey, holder: &HolderId) -> Result<bool, StoreError> {
        self.slot(key).query(&ForceRelease(key.name(), *holder)).await?
    }

    async fn mark_done(
        &self,
        claim: &Claim,
        lasts: Duration,
    ) -> Result<ReleaseOutcome, StoreError> {
        let marked = self.slot(claim.key()).query(&MarkDone(claim, lasts)).await?;
        Ok(if marked { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld })
    }

    fn refuses_done(&self) -> Option<String> {
        None
    }

    fn keeps_long_values(&self) -> bool {
        true
    }

    fn address(&self) -> Option<String> {
        Some(self.address.clone())
    }

    fn notes_departures(&self) -> bool {
        true
    }

    fn needs_io(&self) -> bool {
        true
    }

    /// Each connection is checked, so that the first locks need not wait for one.
    async fn ping(&self) -> Result<(), StoreError> {
        let pings = join_all(self.slots.iter().map(|slot| async move {
            let live = slot.get().await?;
            let outcome = slot.finish(&live, live.client.check_connection()).await;
            outcome.map_err(|failure| failure.error)
        }));
        pings.await.into_iter().collect()
    }

    fn refuses(&self, key: &LockKey) -> Option<String> {
        let bytes = key.name().len();
        (bytes > LONGEST_NAME).then(|| {
            format!("with its prefix it has {bytes} bytes, and PostgreSQL indexes {LONGEST_NAME}")
        })
    }

    /// It has shared locks, permits and several keys.
    fn refuses_claim(&self, _claim: &Claim) -> Option<String> {
        None
    }
}
