//! The other form of the store in a PostgreSQL database: advisory locks, that belong to a session and
//! end with it.

mod acquire;
mod claims;
mod events;
mod force_release;
mod inspect;
mod keeper;
mod label;
mod queries;
mod release;
mod renew;
mod session;
mod sessions;
mod sql;
mod wait;

use std::fmt;
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use url::Url;

use super::config::Config;
use super::lock_kind::LockKind;
use crate::lock::settings::ServerSettings;
use crate::store::url::StoreUrl;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, Notifications, ReleaseOutcome, ReleaseRequest,
    RenewOutcome, RenewRequest, Sharing, Store, StoreError, Subscriber, connection_for,
};
use crate::{Error, FencingToken, HeldLock, Holder};
use acquire::token_numbered;
use claims::Claims;
use events::Processes;
use session::Session;
use sessions::Sessions;

/// A name of so many bytes does not go into the message by which its holder hears that others wait.
const NO_MESSAGE: usize = 8_000;

/// Locks that belong to a connection: PostgreSQL's advisory locks (version 13 and later), chosen by
/// `postgres://…?lock=session`.
///
/// It keeps nothing in the database, neither tables nor functions, and needs no right but to connect.
/// A lock of the name `lock:product:42` is one statement for anybody, in any language:
///
/// ```sql
/// select pg_advisory_lock(hashtextextended('lock:product:42', 0));
/// ```
///
/// That is the number forever. It has 64 bits: two names that meet on one number are one lock.
///
/// * **There is no TTL at the server.** A lock ends when it is given back, or when its connection
///   ends: at once if its process is killed; if its host vanishes or is cut off, when the server's
///   keepalives have found that out, which is 1.25 times the longest TTL asked for on that connection.
///   The TTL says how long a holder believes in its lock without hearing from the server: by then it is
///   `Lost`. A process that is frozen (SIGSTOP) keeps others out for as long as it is; but it is notified
///   `Lost` when it goes on.
/// * **If something between the two ends the connection at the server only**, as a proxy can, the
///   next one gets in before the holder knows, which asks after a third of the TTL. Fencing tokens are
///   for that.
/// * **A waiter stands in the server's own line**, on a connection of its own, and is granted the
///   lock by the server. The others share `connections` of them per tokio runtime. When a runtime ends, its
///   connections end, and its locks with them.
/// * **A claim for several keys** that waits has some of them already; two such claims take them in
///   one order and cannot wait for each other. Permits are refused: there are no such advisory locks.
/// * **`hold_at_least`** is kept by this process, and ends with it.
/// * **Fencing tokens** are the server's transaction numbers (`pg_current_xact_id`): they grow over
///   crashes and restarts, to a synchronous standby, and with `pg_upgrade`; not to an asynchronous
///   standby that had not got the last of them, nor into a new server filled from a dump. Each makes
///   its way to the log (a logical message `lockattr`, empty) before it is notified.
/// * **A holder has no label at the server**: [`holder`](crate::LockManager::holder) tells that of
///   this process' own, and of others what their connection is called: service, host, process.
/// * **[Force](crate::LockManager::force_release) ends the session** that has the lock, and with it all
///   other locks of that session; only of this process' own it takes the one. The user must be the
///   holder's, or have `pg_signal_backend`. What is held [cannot be
///   listed](crate::LockManager::held_locks): the numbers do not tell the names.
/// * **A key** has less than 8,000 bytes with its prefix.
/// * **A pooler must be in session mode**: others give a connection another server process each time.
///   That is looked for when it connects, over three more connections for a moment, and refused; and each statement locks only in the process
///   that the connection began with.
///
/// ```
/// use lockattr::store::PostgresSessionStore;
///
/// let store = PostgresSessionStore::open("postgres://app:secret@db.example/shop")?;
/// assert!(!format!("{store:?}").contains("secret"));
/// # Ok::<(), lockattr::Error>(())
/// ```
pub struct PostgresSessionStore(Arc<Inner>);

/// What the store's tasks know of it.
struct Inner {
    config: Arc<Config>,
    sessions: Sessions,
    claims: Claims,
    notifications: Notifications,
    /// The server processes of the sessions, and those of sessions that are over.
    processes: Mutex<Processes>,
}

impl PostgresSessionStore {
    /// The store that `url` names, with or without `lock=session`. Does not contact the server.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the URL makes no sense.
    pub fn open(url: &str) -> Result<Self, Error> {
        let StoreUrl { urls, mut query } = StoreUrl::parse(url)?;
        if LockKind::take(&mut query)? == Some(LockKind::Lease) {
            let sentence = "`lock=lease` is what `PostgresStore` does: open that";
            return Err(Error::InvalidOptions(sentence.into()));
        }
        Self::at(&urls, &query, ServerSettings::default())
    }

    pub(crate) fn at(
        urls: &[Url],
        query: &[(String, String)],
        defaults: ServerSettings,
    ) -> Result<Self, Error> {
        let config = Arc::new(Config::read(urls, query, defaults)?);
        let sessions = Sessions::new(config.timing.connections());
        let notifications = Notifications::new(Arc::default(), false);
        let (claims, processes) = Default::default();
        Ok(Self(Arc::new(Inner { config, sessions, claims, notifications, processes })))
    }
}

/// For transactions of the caller's own.
impl PostgresSessionStore {
    /// The number of a lock's name.
    pub(super) async fn number_of(&self, key: &LockKey) -> Result<i64, StoreError> {
        let session = self.0.shared(key).await?;
        session.number(key.name()).await.map_err(|failure| failure.error)
    }

    /// The number of an acquisition by the server process `pid`, if that has the lock here.
    pub(super) async fn counts(
        &self,
        number: i64,
        pid: i32,
    ) -> Result<Option<FencingToken>, StoreError> {
        let session = self.0.sessions.shared(&self.0, 0).await?;
        let counted_now = session.counts(number, pid).await.map_err(|failure| failure.error)?;
        Ok(counted_now.map(token_numbered))
    }
}

impl Inner {
    /// The session that claims for this key share.
    async fn shared(self: &Arc<Self>, key: &LockKey) -> Result<Arc<Session>, StoreError> {
        self.sessions.shared(self, connection_for(key, self.config.timing.connections())).await
    }
}

fn refused(sharing: Sharing) -> Option<String> {
    matches!(sharing, Sharing::Permits(_)).then(|| {
        "`permits` cannot be had with `lock=session`: PostgreSQL has no advisory locks of that kind; \
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

/// The tasks of those that wait keep the store's inside; its sessions end with it.
impl Drop for PostgresSessionStore {
    fn drop(&mut self) {
        self.0.claims.waiting().iter().for_each(|waits| waits.give_up());
    }
}

impl Store for PostgresSessionStore {
    async fn acquire(&self, asked: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        self.0.acquire(asked).await
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
        join_all(releases.iter().map(|releasing| self.0.release(releasing))).await
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        self.0.holder(key).await
    }

    async fn held_locks(&self, _prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        let sentence = "advisory locks have numbers at the server, and no names: ask who has one of them \
                        by its key, or leave `lock=session` out of the URL and lock by leases";
        Err(StoreError::new(sentence).not_sent())
    }

    async fn force_release(&self, key: &LockKey) -> Result<bool, StoreError> {
        self.0.force_release(key).await
    }

    /// Makes all shared connections, so that the first locks need not wait for them.
    fn needs_io(&self) -> bool {
        true
    }

    async fn ping(&self) -> Result<(), StoreError> {
        let places = 0..self.0.config.timing.connections();
        let pings = join_all(places.map(|place| async move {
            let session = self.0.sessions.shared(&self.0, place).await?;
            session.run("").await.map_err(|failure| failure.error)
        }));
        pings.await.into_iter().collect()
    }

    fn refuses(&self, key: &LockKey) -> Option<String> {
        if key.name().contains('\0') {
            return Some("it has a zero byte, which PostgreSQL's texts cannot have".to_owned());
        }
        let bytes = key.name().len();
        (bytes >= NO_MESSAGE).then(|| {
            format!(
                "with its prefix it has {bytes} bytes, and `NOTIFY` carries less than {NO_MESSAGE} \
                 bytes"
            )
        })
    }

    fn refuses_claim(&self, claim: &Claim) -> Option<String> {
        let sharing = claim.sharing();
        refused(sharing)
    }
}
