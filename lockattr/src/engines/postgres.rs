//! The store in a PostgreSQL database.
//!
//! A lock is a row with an end by the server's clock. Each step that compares and changes is a
//! function in the database: the rules of the Redis scripts, in PL/pgSQL.

mod advisory;
mod config;
mod connection_slot;
mod driver;
mod failure;
#[cfg(fuzzing)]
pub mod fuzzed;
mod heartbeat;
mod held_locks;
mod listener;
mod lock_kind;
mod pooler;
mod queries;
mod session;
mod transaction;
mod transaction_waiters;

use std::fmt;
use std::sync::Arc;

use futures_util::future::{join, join_all};
use tokio::time::Instant;
use url::Url;

use crate::lock::settings::ServerSettings;
use crate::store::url::StoreUrl;
use crate::store::{
    AcquireOutcome, AcquireRequest, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, Store, StoreError, Subscriber, Waiting, connection_for,
};
use crate::{Error, HeldLock, Holder};
pub use advisory::PostgresSessionStore;
use config::Config;
use connection_slot::ConnectionSlot;
use failure::Failure;
use held_locks::{ForceRelease, HeldLocksQuery, force_released};
use listener::Listener;
use lock_kind::LockKind;
pub(crate) use lock_kind::open;
use queries::{AcquireQuery, BatchItem, HolderQuery, Queries, Query};
pub use transaction::PostgresTransaction;
pub(crate) use transaction::{InTransactions, TAKEN, TOO_STRICT, in_transactions};

/// Most claims in one statement. A longer one would block too many locks for others.
const BATCH: usize = 100;

/// How often a conflicting statement is repeated.
const MAX_ATTEMPTS: usize = 3;

/// Longest name, in bytes. A longer one does not fit an index.
const LONGEST_NAME: usize = 2_000;

/// Everything that the store creates in the database.
macro_rules! migration {
    () => {
        concat!(
            include_str!("postgres/tables.sql"),
            include_str!("postgres/guard.sql"),
            include_str!("postgres/count.sql"),
            include_str!("postgres/queue.sql"),
            include_str!("postgres/acquire.sql"),
            include_str!("postgres/release.sql"),
            include_str!("postgres/transaction.sql"),
            include_str!("postgres/renew.sql"),
            include_str!("postgres/force_release.sql"),
        )
    };
}

/// Locks in a PostgreSQL database (12 and later), over a small pool of connections.
///
/// Made by [`LockManager::connect`](crate::LockManager::connect) from a `postgres://` or
/// `postgresql://` URL, or by hand. A lock is a row in a table, whose lease ends by the server's
/// clock. Acquiring and releasing are one statement each, and so is renewing all due leases. The
/// statement calls a function in the database, so that no transaction is open while a client is
/// slow. A caller that cannot acquire joins the wait queue, also a table, and a `NOTIFY` tells it
/// that it has the lock. While nothing changes, each connection only checks the server once per
/// `heartbeat`.
///
/// # URL
///
/// `postgres://user:password@host:5432/database?name=value`, with several hosts separated by
/// commas, or the directory of a Unix socket as `%2Fvar%2Frun%2Fpostgresql`. The query may set
/// `connections`, `connect_timeout`, `response_timeout` and `heartbeat`, and these parameters of
/// libpq: `host`, `hostaddr`, `port`, `user`, `password`, `dbname`, `options`, `application_name`,
/// `sslmode`, `sslnegotiation`, `channel_binding`, `target_session_attrs`, `load_balance_hosts`,
/// `keepalives`, `keepalives_idle`, `keepalives_interval`, `keepalives_retries` and
/// `tcp_user_timeout`. Of several hosts, the store uses the one that accepts writes, unless
/// `target_session_attrs` says otherwise. TLS is not supported yet, so `sslmode=require` is
/// refused.
///
/// A process has `connections` (2) sessions for each runtime that locks, and one more that listens.
/// When a session is opened, at most once a minute, three more briefly probe for a pooler. So the
/// server, or the pool, needs room for `connections` + 3.
///
/// # Tables
///
/// The first connection creates `lockattr_leases`, `lockattr_shares`, `lockattr_line`, the sequence
/// `lockattr_fence` and functions whose names begin with `lockattr_`, in the first schema of the
/// search path (`?options=-csearch_path%3Dlocks` for another). If its user lacks the rights, run
/// [`MIGRATION`](Self::MIGRATION) as a user who has them, and grant these:
///
/// ```text
/// grant select, insert, update, delete on lockattr_leases, lockattr_shares, lockattr_line to app;
/// grant usage, update on sequence lockattr_fence to app;
/// ```
///
/// A row is deleted when its lock is released. Rows of dead holders are deleted gradually, so only
/// the sequence stays. The names of the functions end in their version: programs of an older and a
/// newer release can lock side by side.
///
/// As in every table of PostgreSQL, deleted rows take up space until no transaction can see them. A
/// key that is locked a thousand times a second becomes slow while another transaction of the
/// database stays open for an hour.
///
/// # Durability
///
/// A lock is as durable as the database's commits. With `synchronous_commit = on`, the default, it
/// survives a crash, and its holder renews it when the server is back. With `off`, a lock granted
/// in the last moments before a crash may be granted again. So may, after a failover to an
/// asynchronous standby, a lock that the standby had not received. A synchronous standby has all
/// locks (`synchronous_commit` is `on` or stronger, and `synchronous_standby_names` is set). In
/// each case [fencing tokens](crate::FencingToken) grow, as long as the servers' clocks differ by
/// less than the failover takes.
///
/// # Dead waiters
///
/// A waiter counts as alive while the server has the connection over which it listens. A killed
/// process is passed over once the server has seen that connection close, mostly within
/// milliseconds. A machine that vanished silently is passed over once three keepalives, which the
/// server sends each `heartbeat`, had no answer. A lock that becomes free before that is granted to
/// the dead waiter, and is free again when that lease ends without a renewal, one `ttl` later.
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
/// * PostgreSQL commits transactions that notify one at a time, across all databases of a server.
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
    address: String,
}

impl PostgresStore {
    /// The tables and functions that the store creates when it first connects, in SQL.
    ///
    /// For databases whose users may not create them: run it as a user who may. It can run any
    /// number of times, beside programs that lock.
    ///
    /// ```
    /// use lockattr::store::PostgresStore;
    ///
    /// assert!(PostgresStore::MIGRATION.contains("create table if not exists lockattr_leases"));
    /// ```
    ///
    /// Its text:
    ///
    #[doc = concat!("```sql\n", migration!(), "```")]
    pub const MIGRATION: &'static str = migration!();

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
        Self::at(&urls, &query, ServerSettings::default())
    }

    pub(crate) fn at(
        urls: &[Url],
        query: &[(String, String)],
        defaults: ServerSettings,
    ) -> Result<Self, Error> {
        let config = Config::read(urls, query, defaults)?;
        let queries = Arc::new(Queries);
        let connections = 0..config.timing.connections();
        Ok(Self {
            slots: connections
                .map(|_| ConnectionSlot::new(config.clone(), queries.clone()))
                .collect(),
            address: config.address.clone(),
            listener: ConnectionSlot::new(config, Arc::default()),
        })
    }

    /// The connection for a key: always the same one, so that commands keep their order.
    fn slot(&self, key: &LockKey) -> &Arc<ConnectionSlot<Queries>> {
        &self.slots[self.slot_index(key)]
    }

    fn slot_index(&self, key: &LockKey) -> usize {
        connection_for(key, self.slots.len())
    }

    async fn try_acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        let AcquireRequest { claim, ttl, waiting, .. } = request;
        let listener_lock = match waiting {
            Waiting::Not => None,
            // Listen first: a grant for a process that does not listen would be passed on.
            Waiting::Queued | Waiting::Told { .. } => {
                let listener_lock = self.listener.subscribe(claim.token().subscriber()).await?;
                claim.enter_queue(*ttl, *waiting);
                self.listener.role.1.add(claim);
                Some(listener_lock)
            }
        };
        let sent = Instant::now();
        let slot = self.slot(claim.key());
        let granted = in_one_step(slot, &AcquireQuery { request, listener_lock }).await?;
        let (outcome, clock) = granted.ok_or_else(unexpected_reply)?;
        if let Some(micros) = clock {
            self.listener.role.0.saw_clock(sent, micros);
        }
        Ok(outcome)
    }

    /// Whether each claim held its locks, in the order of `items`. Sends one statement for each
    /// connection and batch of `BATCH` claims, all at once.
    async fn run_batches<I: BatchItem>(&self, items: &[I]) -> Vec<Result<bool, StoreError>> {
        if let [item] = items {
            let held = in_one_step(self.slot(item.claim().key()), &[item][..]).await;
            return vec![held.and_then(|held| held.first().copied().ok_or_else(too_short))];
        }
        let mut by_slot = vec![Vec::new(); self.slots.len()];
        for (index, item) in items.iter().enumerate() {
            by_slot[self.slot_index(item.claim().key())].push((index, item));
        }
        let slots = self.slots.iter().zip(&by_slot);
        let batches =
            slots.flat_map(|(slot, request)| request.chunks(BATCH).map(move |it| (slot, it)));
        let replies = batches.map(|(slot, request)| async move {
            let batch: Vec<_> = request.iter().map(|(_, item)| *item).collect();
            (request, in_one_step(slot, &batch[..]).await)
        });
        let mut outcomes = vec![Err(too_short()); items.len()];
        for (request, replies) in join_all(replies).await {
            for (nth, (index, _)) in request.iter().enumerate() {
                outcomes[*index] = match &replies {
                    Ok(held) => held.get(nth).copied().ok_or_else(too_short),
                    Err(error) => Err(error.clone()),
                };
            }
        }
        outcomes
    }
}

fn too_short() -> StoreError {
    StoreError::new("the server's reply was too short")
}

fn unexpected_reply() -> StoreError {
    StoreError::new("the server sent an unexpected reply")
}

/// Runs one statement, and repeats it if it conflicted with another transaction.
async fn in_one_step<Q: Query + ?Sized>(
    slot: &Arc<ConnectionSlot<Queries>>,
    query: &Q,
) -> Result<Q::Output, StoreError> {
    let live = slot.get().await?;
    let mut attempts = 0;
    loop {
        match slot.finish(&live, query.run(&live.session, &live.client)).await {
            Err(Failure { is_conflict: true, .. }) if attempts < MAX_ATTEMPTS => attempts += 1,
            outcome => return outcome.map_err(|failure| failure.error),
        }
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Store for PostgresStore {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        self.try_acquire(request).await
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.listener.role.0.subscribers.add(subscriber);
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        let held = self.run_batches(renewals).await.into_iter();
        held.map(|held| Ok(if held? { RenewOutcome::Renewed } else { RenewOutcome::NotHeld }))
            .collect()
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        let held = self.run_batches(releases).await.into_iter();
        held.map(|held| Ok(if held? { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld }))
            .collect()
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        in_one_step(self.slot(key), &HolderQuery(key.name())).await
    }

    async fn held_locks(&self, prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        in_one_step(&self.slots[0], &HeldLocksQuery(prefix)).await
    }

    async fn force_release(&self, key: &LockKey) -> Result<bool, StoreError> {
        let outcome = in_one_step(self.slot(key), &ForceRelease(key.name())).await?;
        force_released(outcome).ok_or_else(unexpected_reply)?
    }

    /// Each connection is checked, so that the first locks need not wait for one.
    fn needs_io(&self) -> bool {
        true
    }

    async fn ping(&self) -> Result<(), StoreError> {
        let pings = join_all(self.slots.iter().map(|slot| async move {
            let live = slot.get().await?;
            let outcome = slot.finish(&live, live.client.check_connection()).await;
            outcome.map_err(|failure| failure.error)
        }));
        let (pings, listens) = join(pings, self.listener.get()).await;
        pings.into_iter().collect::<Result<(), _>>().and(listens.map(|_| ()))
    }

    fn refuses(&self, key: &LockKey) -> Option<String> {
        let bytes = key.name().len();
        (bytes > LONGEST_NAME).then(|| {
            format!("with its prefix it has {bytes} bytes, and PostgreSQL indexes {LONGEST_NAME}")
        })
    }
}
