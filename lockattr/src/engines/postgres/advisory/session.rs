//! A connection whose server process holds locks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_postgres::Client;

use super::super::config::Config;
use super::super::connect::{Connected, Messages};
use super::super::driver::{self, Driver};
use super::super::failure::{connected, failure_of};
use super::super::pooler;
use super::super::session::replaced;
use super::inspect::holder_id;
use super::keeper::keep;
use super::requests::SessionRequests;
use super::sessions::Place;
use super::statements::Statements;
use super::{Inner, lock_table, sql};
use crate::HolderId;
use crate::platform::sync::Mutex;
use crate::store::last_reply::LastReply;
use crate::store::slots::is_current;
use crate::store::{Claim, StoreError};

/// A connection and its server process.
pub(super) struct Session {
    /// Unique in this process.
    pub(super) id: u64,
    /// The server process, which holds the locks.
    pub(super) pid: i32,
    /// When that began. Together with `pid`, it is unique.
    pub(super) began: String,
    /// The session ends with this runtime.
    pub(super) runtime: Handle,
    /// Whether it was opened for one claim that had to wait.
    pub(super) own: bool,
    /// Its place among those sessions, while it is in use.
    pub(super) place: Mutex<Option<Place>>,
    /// Whether it waits in the server's queue, and cannot answer.
    pub(super) is_waiting: AtomicBool,
    pub(super) client: Client,
    pub(super) statements: Statements,
    pub(super) config: Arc<Config>,
    /// The longest TTL for which keepalives were set, in seconds.
    longest: AtomicU64,
    labelled: OnceLock<()>,
    pub(super) requests: SessionRequests,
    /// Whether it has answered since its keeper looked, and when it last did.
    pub(super) answered: AtomicBool,
    pub(super) last_reply: LastReply,
    /// When its keeper wakes, and what wakes it earlier.
    pub(super) next: Mutex<Option<Instant>>,
    pub(super) wake_keeper: Arc<Notify>,
    pub(super) driver: AbortHandle,
    /// The task that drives it may not have ended yet, if its runtime is not driven.
    closed: AtomicBool,
}

impl Session {
    pub(super) async fn open(inner: &Arc<Inner>, own: bool) -> Result<Arc<Self>, StoreError> {
        pooler::refuse(&inner.config).await?;
        let login = inner.config.login().await.map_err(StoreError::not_sent)?;
        let client = inner.config.connect(&login).await.map_err(StoreError::not_sent)?;
        let opened = connected(&inner.config, Self::establish(inner, client, own)).await;
        opened.map_err(StoreError::not_sent)
    }

    async fn establish(
        inner: &Arc<Inner>,
        (client, connection): Connected,
        own: bool,
    ) -> Result<Arc<Self>, StoreError> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let runtime = Handle::try_current()
            .map_err(|_| StoreError::new("this store can only be used inside a tokio runtime"))?;
        let config = &inner.config;
        let failed = |error| failure_of(&config.address, error).error;
        let id = LAST.fetch_add(1, Ordering::Relaxed);
        let driver = Driver::start(drive(connection, id, Arc::downgrade(inner)));
        let settings = settings(config, &inner.left());
        let (set, process, table, statements) = tokio::try_join!(
            client.batch_execute(&settings),
            client.simple_query(pooler::SERVER_PROCESS),
            client.simple_query(lock_table::SIZE),
            Statements::prepare(&client),
        )
        .map_err(failed)?;
        let () = set;
        let size = pooler::first_row(&table).and_then(|row| pooler::column(row, 0)?.parse().ok());
        size.into_iter().for_each(|size| inner.lock_table.is(size));
        let (pid, began) = pooler::server_process(&process).ok_or_else(|| {
            StoreError::new(format!("{}: the server did not report its process", config.address))
        })?;
        client.batch_execute(&format!("listen {}{pid}", sql::CHANNEL)).await.map_err(failed)?;
        let session = Arc::new(Self {
            id,
            pid,
            began,
            runtime,
            own,
            place: Mutex::new(None),
            is_waiting: AtomicBool::new(false),
            client,
            statements,
            config: config.clone(),
            longest: AtomicU64::new(0),
            labelled: OnceLock::new(),
            requests: SessionRequests::default(),
            answered: AtomicBool::new(true),
            last_reply: LastReply::new(),
            next: Mutex::new(None),
            wake_keeper: Arc::default(),
            driver: driver.keep(),
            closed: AtomicBool::new(false),
        });
        inner.opened(&session);
        tokio::spawn(keep(Arc::downgrade(&session), Arc::downgrade(inner)));
        Ok(session)
    }

    /// The id of the holder whose locks it has.
    pub(super) fn holder_id(&self) -> HolderId {
        holder_id(self.pid, Some(&self.began))
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_closed() || self.client.is_closed() || self.driver.is_finished()
    }

    /// Whether the runtime of the caller drives it.
    pub(super) fn is_here(&self) -> bool {
        is_current(&self.runtime)
    }

    /// The server has answered.
    pub(super) fn note_reply(&self) {
        self.answered.store(true, Ordering::Relaxed);
        self.last_reply.record();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Closes the session. The outcome of pending requests stays unknown. The server releases the
    /// locks once it notices.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.driver.abort();
        self.wake_keeper.notify_one();
    }

    /// The statement that ends this session, for another one.
    pub(super) fn ending(&self) -> String {
        end_of(self.pid, &self.began)
    }

    /// Sends settings ahead of a claim's request: a name for the session, and how long its locks
    /// may outlast a client that has vanished.
    pub(super) fn prepare_for(&self, claim: &Claim, ttl: Duration) {
        let mut first = String::new();
        let seconds = ttl.as_secs().clamp(1, 86_400) + 1;
        if self.longest.fetch_max(seconds, Ordering::Relaxed) < seconds {
            // Longer than the lease. Otherwise a second holder could acquire the lock during it.
            let (idle, each, millis) = (seconds.div_ceil(2), seconds.div_ceil(4), seconds * 1_250);
            first = format!(
                "select set_config(name, value, false) from (values
                    ('tcp_keepalives_idle', '{idle}'), ('tcp_keepalives_interval', '{each}'),
                    ('tcp_keepalives_count', '3'), ('tcp_user_timeout', '{millis}')
                ) as ours (name, value) join pg_settings using (name);"
            );
        }
        if self.labelled.set(()).is_ok() {
            first.push_str(&super::label::name_session(claim));
        }
        if !first.is_empty() {
            // One poll sends it ahead of the next request. Its answer is not needed.
            let sent = self.client.batch_execute(&first);
            let _sent = futures_util::FutureExt::now_or_never(sent);
        }
    }

    /// Makes the keeper wake at `ends` at the latest.
    pub(super) fn wake_keeper_by(&self, ends: Instant) {
        let mut next = self.next.lock();
        if next.is_none_or(|next| ends < next) {
            *next = Some(ends);
            self.wake_keeper.notify_one();
        }
    }
}

/// Overrides settings of the database, its owner or the user's role. Also ends the sessions that
/// were abandoned without an answer, which keep their locks while the server considers them alive.
fn settings(config: &Config, left: &[(i32, String)]) -> String {
    let beat = config.timing.heartbeat.as_millis().clamp(1, 2_000_000_000);
    let left: String = left.iter().map(|(pid, began)| end_of(*pid, began)).collect();
    let ours = replaced(&format!(
        "-- A claim waits in the queue without a limit.
            ('statement_timeout', '0'),
            -- The server must also notice when the client of a waiting claim is gone.
            ('client_connection_check_interval', '{beat}')"
    ));
    format!(
        "{ours};
        -- A fencing token is on disk before the client gets it.
        select set_config('synchronous_commit', 'on', false)
        where current_setting('synchronous_commit') = 'off';
        {left}"
    )
}

/// The statement that ends a session. With the time of its start, `pid` cannot be another's.
fn end_of(pid: i32, began: &str) -> String {
    format!(
        "select pg_terminate_backend(pid) from pg_stat_activity
         where pid = {pid} and date_part('epoch', backend_start)::text = '{began}';"
    )
}

/// Reads and writes for a connection until it ends, also with its runtime; then reports the end.
async fn drive(connection: Box<dyn Messages>, id: u64, inner: Weak<Inner>) {
    let ended = NotifyOnDrop { id, inner };
    driver::drive(connection, |notification| {
        if let Some(inner) = ended.inner.upgrade() {
            inner.note_contended(notification.channel(), notification.payload());
        }
    })
    .await;
}

struct NotifyOnDrop {
    id: u64,
    inner: Weak<Inner>,
}

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.upgrade() {
            inner.lost(self.id);
        }
    }
}
