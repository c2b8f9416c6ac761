//! The store with PostgreSQL's advisory locks, which belong to a session and end with it.

mod acquire;
mod claims;
mod events;
mod execute;
mod force_release;
mod grant;
mod inspect;
mod keeper;
mod label;
mod lock_table;
mod places;
mod queries;
mod release;
mod renew;
mod requests;
mod session;
mod sessions;
mod sql;
mod statements;
mod wait;
mod waiter;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use url::Url;

use super::config::Config;
use super::connect::By;
use super::lock_kind::LockKind;
use crate::engines::contended::Contended;
use crate::engines::sql::check_max_sessions;
use crate::lock::server_options::ServerOptions;
use crate::platform::sync::Mutex;
use crate::store::url::StoreUrl;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, Notifications, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Sharing, Store, StoreError, Subscriber, connection_for,
};
use crate::{Error, FencingToken, HeldLock, Holder, HolderId};
use acquire::token_from;
use claims::Claims;
use events::Processes;
use lock_table::LockTable;
use session::Session;
use sessions::{DEFAULT_MAX_SESSIONS, Sessions, take_max_sessions};

/// A name of this many bytes does not fit into the message that notifies its holder of waiters.
const NO_MESSAGE: usize = 8_000;

/// Locks that belong to a connection: PostgreSQL's advisory locks (version 13 and later), chosen by
/// `postgres://…?lock=session`.
///
/// It creates no tables or functions in the database, and needs no right except to connect. Any
/// program, in any language, takes a lock of the name `lock:product:42` with one statement:
///
/// ```sql
/// select pg_advisory_lock(hashtextextended('lock:product:42', 0));
/// ```
///
/// The number of a name never changes. It has 64 bits: two names with the same number are one lock.
///
/// * **The server has no TTL.** A lock ends when it is released, or when its connection ends: at
///   once if its process is killed. If its host vanishes or is cut off, the server's keepalives
///   detect that after 1.25 times the longest TTL asked for on that connection. The TTL says how
///   long a holder relies on its lock without an answer from the server: after that the lock is
///   `Lost`. A frozen process (SIGSTOP) keeps its lock while it is frozen, but gets `Lost` when it
///   continues.
/// * **If something between the two ends the connection at the server only**, as a proxy can, the
///   next waiter acquires the lock before the holder learns of it at its renewal, after a third of
///   the TTL. Fencing tokens protect the resource meanwhile.
/// * **A waiter waits in the server's own queue**, on a connection of its own, and the server
///   grants it the lock. A store opens at most `max_sessions` (16) such connections: with the
///   default, five processes fit in a server with 100 connections, PostgreSQL's default. A claim
///   that was granted its lock this way keeps the connection until it releases. Further waiters
///   wait in this process, in order, for one of the connections. Meanwhile they try every
///   `retry_delay`, less often if they are many, so that a free lock is acquired in any case. All
///   other claims share `connections` connections per tokio runtime. When a runtime ends, its
///   connections end, and its locks with them.
/// * **A shared lock** is held on a connection of its own by each reader of a process but the
///   first, so `max_sessions` limits the readers of one process.
/// * **A store holds at most half of the locks** that the server's lock table has room for, which
///   is `max_locks_per_transaction` × `max_connections`: 3,200 with PostgreSQL's defaults. It
///   refuses a claim for more keys, because a full table fails the statements of all other clients.
/// * **A waiting claim for several keys** may hold some already. All claims take their locks in one
///   order, so they cannot deadlock. Permits are refused: PostgreSQL has no such advisory locks.
/// * **`hold_at_least`** is enforced by this process, and ends with it.
/// * **Fencing tokens** are the server's transaction numbers (`pg_current_xact_id`). They grow
///   across crashes and restarts, a failover to a synchronous standby, and `pg_upgrade`. They may
///   not grow after a failover to an asynchronous standby that had not received the last of them,
///   or in a new server filled from a dump. Each is written to the log (an empty logical message
///   `lockattr`) before it is returned. Locks on different keys that were acquired in one statement
///   have the same one.
/// * **There are no tables**, so there is no `schema`: all session locks of a database are one set.
///   The functions are those of `pg_catalog`, whatever the search path says.
/// * **A holder has no label at the server.** [`holder`](crate::LockManager::holder) returns the
///   label for a holder in this process, and for others the name of their connection: service,
///   host, process.
/// * **[Force](crate::LockManager::force_release) ends the session** that has the holder's id, if it still holds the lock, and with
///   it all other locks of that session. Within this process it takes only the one lock. The user
///   must be the holder's, or have `pg_signal_backend`.
///   [`held_locks`](crate::LockManager::held_locks) is refused, because the numbers do not reveal
///   the names.
/// * **A key** has less than 8,000 bytes with its prefix.
/// * **If the server's host vanishes**, the client's system closes the connection after `heartbeat`
///   without traffic and three probes without an answer, each of which has `response_timeout`. Set
///   `keepalives_idle`, `keepalives_interval`, `keepalives_retries` or `tcp_user_timeout` in the URL
///   to override that.
/// * **TLS, passwords that rotate, and pools** are as in [`PostgresStore`](super::PostgresStore).
///   When a session ends, all its locks do.
/// * **A pooler must be in session mode**, with `connections` + `max_sessions` + 3 connections for
///   each process: otherwise a connection gets another server process each time. Connecting checks
///   for that, briefly with three more connections, and fails if so. Also, each statement locks only
///   in the process that the connection began with.
///
/// ```
/// use lockattr::store::PostgresSessionStore;
///
/// let store = PostgresSessionStore::open("postgres://app:secret@db.example/shop")?;
/// assert!(!format!("{store:?}").contains("secret"));
/// # Ok::<(), lockattr::Error>(())
/// ```
pub struct PostgresSessionStore(Arc<Inner>);

/// The state that the store shares with its tasks.
struct Inner {
    config: Arc<Config>,
    sessions: Sessions,
    claims: Claims,
    notifications: Notifications,
    lock_table: LockTable,
    contended: Contended,
    /// The server processes of open sessions, and of ended ones.
    processes: Mutex<Processes>,
}

impl PostgresSessionStore {
    /// Opens the store that `url` names, with or without `lock=session`, without connecting.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the URL is invalid.
    pub fn open(url: &str) -> Result<Self, Error> {
        let StoreUrl { urls, mut query } = StoreUrl::parse(url)?;
        if LockKind::take(&mut query)? == Some(LockKind::Lease) {
            let sentence =
                "`PostgresSessionStore` does not support `lock=lease`: open a `PostgresStore`";
            return Err(Error::InvalidOptions(sentence.into()));
        }
        Self::at(&urls, &query, ServerOptions::default())
    }

    /// Makes a store from the settings and the TLS of the program's own client. Does not contact the
    /// server.
    ///
    /// As [`PostgresStore::from_config`](super::PostgresStore::from_config), which says what `tls`
    /// may be, and what counts of `config` and `options`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if a value in `options` is out of range.
    ///
    /// ```
    /// use lockattr::store::{PostgresSessionStore, ServerOptions};
    ///
    /// let config: tokio_postgres::Config = "host=db.example dbname=shop user=app".parse()?;
    /// let options = ServerOptions::new().connections(1);
    /// let store = PostgresSessionStore::from_config(config, tokio_postgres::NoTls, options)?;
    /// let store = store.max_sessions(4)?;
    /// # let _ = store;
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
        Self::over(Config::of(config, Arc::new(By(tls)), options)?, DEFAULT_MAX_SESSIONS)
    }

    /// The largest number of connections for waiting claims and readers (1 to 10,000): 16 by
    /// default. In a URL, `max_sessions` sets it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the number is out of range, or if the store is already in use.
    ///
    /// ```
    /// use lockattr::store::PostgresSessionStore;
    ///
    /// let store = PostgresSessionStore::open("postgres://db.example/shop")?.max_sessions(4)?;
    /// # let _ = store;
    /// # Ok::<(), lockattr::Error>(())
    /// ```
    pub fn max_sessions(mut self, sessions: usize) -> Result<Self, Error> {
        let sessions = check_max_sessions(sessions)?;
        let Some(inner) = Arc::get_mut(&mut self.0) else {
            let sentence = "`max_sessions` must be set before the store is used";
            return Err(Error::InvalidOptions(sentence.into()));
        };
        inner.sessions = Sessions::new(inner.config.timing.database_connections(), sessions);
        Ok(self)
    }

    pub(crate) fn at(
        urls: &[Url],
        query: &[(String, String)],
        defaults: ServerOptions,
    ) -> Result<Self, Error> {
        let mut query = query.to_vec();
        let max_sessions = take_max_sessions(&mut query)?;
        Self::over(Config::read(urls, &query, defaults)?, max_sessions)
    }

    fn over(config: Config, max_sessions: usize) -> Result<Self, Error> {
        if config.schema.is_named {
            return Err(Error::InvalidOptions(
                "`schema` is not supported with `lock=session`, which has no tables: all session locks \
                 of a database are one set, and `prefix` keeps names apart"
                    .into(),
            ));
        }
        let config = Arc::new(config);
        let sessions = Sessions::new(config.timing.database_connections(), max_sessions);
        let notifications = Notifications::new(Arc::default(), false);
        let (claims, lock_table, processes) = Default::default();
        let contended = Contended::new();
        let inner =
            Inner { config, sessions, claims, notifications, lock_table, contended, processes };
        Ok(Self(Arc::new(inner)))
    }
}

/// For transactions of the caller.
impl PostgresSessionStore {
    pub(super) fn config(&self) -> &Config {
        &self.0.config
    }

    pub(super) async fn lock_number(&self, key: &LockKey) -> Result<i64, StoreError> {
        let session = self.0.shared(key).await?;
        session.lock_number(key.name()).await.map_err(|failure| failure.error)
    }

    /// The number of an acquisition by the server process `pid`, if that process holds the lock.
    pub(super) async fn count_if_held(
        &self,
        number: i64,
        pid: i32,
    ) -> Result<Option<FencingToken>, StoreError> {
        let session = self.0.sessions.shared(&self.0, 0).await?;
        let counted_now =
            session.count_if_held(number, pid).await.map_err(|failure| failure.error)?;
        Ok(counted_now.map(token_from))
    }
}

impl Inner {
    /// The shared session for this key.
    async fn shared(self: &Arc<Self>, key: &LockKey) -> Result<Arc<Session>, StoreError> {
        self.sessions
            .shared(self, connection_for(key, self.config.timing.database_connections()))
            .await
    }
}

fn refused(sharing: Sharing) -> Option<String> {
    matches!(sharing, Sharing::Permits(_)).then(|| {
        "`permits` is not supported with `lock=session`: PostgreSQL has no advisory locks of that kind; \
         use the leases of the same database (`lock=lease`, the default)"
            .to_owned()
    })
}

impl fmt::Debug for PostgresSessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.0.config.address;
        f.debug_struct("PostgresSessionStore").field("address", address).finish_non_exhaustive()
    }
}

/// The tasks of waiters keep `Inner` alive, so they must give up first.
impl Drop for PostgresSessionStore {
    fn drop(&mut self) {
        self.0.claims.waiting().iter().for_each(|waiter| waiter.cancel());
    }
}

/// Why a session lock cannot outlive its process.
const ENDS_WITH_THE_SESSION: &str = "with `lock=session`, a lock ends with its connection, so no key stays done when the process \
     ends: leave `lock=session` out of the URL and lock by leases";

impl Store for PostgresSessionStore {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        self.0.acquire(request).await
    }

    fn kind(&self) -> Cow<'static, str> {
        // The scheme of its URL; `lock=session` is a setting.
        "postgres".into()
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.0.notifications.subscribers.add(subscriber);
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        self.0.renew(renewals).await
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        join_all(releases.iter().map(|release| self.0.release(release))).await
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        self.0.holder(key).await
    }

    async fn held_locks(&self, _prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        let sentence = "the server knows advisory locks by number, not by name: look up the holder of one lock \
                        by its key, or leave `lock=session` out of the URL and lock by leases";
        Err(StoreError::new(sentence).not_sent())
    }

    async fn force_release(&self, key: &LockKey, holder: &HolderId) -> Result<bool, StoreError> {
        self.0.force_release(key, *holder).await
    }

    fn address(&self) -> Option<String> {
        Some(self.0.config.address.clone())
    }

    fn notes_departures(&self) -> bool {
        true
    }

    fn needs_io(&self) -> bool {
        true
    }

    /// Opens all shared connections, so that the first locks need not wait for them.
    async fn ping(&self) -> Result<(), StoreError> {
        let places = 0..self.0.config.timing.database_connections();
        let pings = join_all(places.map(|place| async move {
            let session = self.0.sessions.shared(&self.0, place).await?;
            session.run("").await.map_err(|failure| failure.error)
        }));
        pings.await.into_iter().collect()
    }

    fn refuses(&self, key: &LockKey) -> Option<String> {
        if key.name().contains('\0') {
            return Some(
                "it has a zero byte, which PostgreSQL's type `text` does not allow".to_owned(),
            );
        }
        let bytes = key.name().len();
        (bytes >= NO_MESSAGE).then(|| {
            format!(
                "with its prefix it has {bytes} bytes, and `NOTIFY` carries less than {NO_MESSAGE} \
                 bytes"
            )
        })
    }

    fn refuses_done(&self) -> Option<String> {
        Some(ENDS_WITH_THE_SESSION.to_owned())
    }

    fn shows_values(&self) -> bool {
        false
    }

    fn refuses_claim(&self, claim: &Claim) -> Option<String> {
        refused(claim.sharing()).or_else(|| self.0.lock_table.refuses(claim.keys().len()))
    }
}
