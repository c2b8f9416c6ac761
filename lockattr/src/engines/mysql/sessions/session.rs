//! A connection, which holds the lock of one claim after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mysql_async::Conn;
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, Notify, OwnedMutexGuard};
use tokio::time::Instant;

use super::numbers::Numbers;
use super::pool::Place;
use crate::FencingToken;
use crate::engines::mysql::config::{Config, idle_seconds};
use crate::engines::mysql::connect::abandon;
use crate::platform::sync::Mutex;
use crate::store::OwnerToken;

pub(super) struct Session {
    /// The session ends with this runtime.
    pub(super) runtime: Handle,
    /// The name of the database.
    pub(super) database: Vec<u8>,
    /// Its place among the connections, while a claim uses it.
    pub(super) place: Mutex<Option<Place>>,
    /// It is of no use any more. The last statement that uses the connection closes it.
    is_over: AtomicBool,
    /// The server lets it be idle for another time.
    pub(super) wake_keeper: Arc<Notify>,
    connection: Arc<AsyncMutex<Connection>>,
}

/// What a statement of the session needs for itself.
pub(super) struct Connection {
    /// Until the session is over.
    pub(super) conn: Option<Conn>,
    pub(super) numbers: Numbers,
    /// The claim that it serves.
    pub(super) token: Option<OwnerToken>,
    pub(super) held: Option<Held>,
    /// How long the server lets the connection be idle, in seconds. While it holds a lock, the TTL: a
    /// process that is stopped keeps the lock for no longer.
    pub(super) idle: u64,
    /// Whether it has answered since its keeper looked.
    pub(super) answered: bool,
    /// Whether a statement may have no reply yet. The next one would read that reply as its own.
    pub(super) is_busy: bool,
}

pub(super) struct Held {
    /// The name of the lock on the server.
    pub(super) name: String,
    /// How long its holder relies on it without an answer.
    pub(super) ttl: Duration,
    /// When the keeper releases it, unless it is renewed: its holder may be blocked, and releases nothing.
    pub(super) ends: Instant,
    pub(super) fencing: FencingToken,
}

impl Held {
    pub(super) fn new(name: String, ttl: Duration, fencing: FencingToken) -> Self {
        Self { name, ttl, ends: Instant::now() + ttl, fencing }
    }
}

/// The right to send statements over a connection, one after the other.
pub(super) struct Use {
    pub(super) session: Arc<Session>,
    pub(super) connection: OwnedMutexGuard<Connection>,
}

impl Session {
    pub(super) fn new(
        config: &Config,
        conn: Conn,
        (numbers, database): (Numbers, Vec<u8>),
        runtime: Handle,
    ) -> Arc<Self> {
        let idle = idle_seconds(config.idle());
        let (token, held) = Default::default();
        let connection = Connection {
            conn: Some(conn),
            numbers,
            token,
            held,
            idle,
            answered: true,
            is_busy: false,
        };
        Self::with(connection, database, runtime)
    }

    /// A session that serves this claim, and holds its lock.
    #[cfg(test)]
    pub(super) fn without_connection(token: OwnerToken) -> Arc<Self> {
        let fencing = FencingToken::from_counter(1);
        let held = Held::new("lock:a".into(), Duration::from_secs(9), fencing);
        let (numbers, token, held) = (Numbers::for_test(), Some(token), Some(held));
        let connection = Connection {
            conn: None,
            numbers,
            token,
            held,
            idle: 9,
            answered: true,
            is_busy: false,
        };
        Self::with(connection, b"db".into(), Handle::current())
    }

    fn with(connection: Connection, database: Vec<u8>, runtime: Handle) -> Arc<Self> {
        let connection = Arc::new(AsyncMutex::new(connection));
        let (place, is_over, wake_keeper) = Default::default();
        Arc::new(Self { runtime, database, place, is_over, wake_keeper, connection })
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Closes the connection, as soon as no statement uses it.
    pub(super) fn end(self: &Arc<Self>) {
        self.is_over.store(true, Ordering::Release);
        drop(self.try_use());
    }

    /// Waits for the statements before.
    pub(super) async fn to_use(self: &Arc<Self>) -> Use {
        let connection = self.connection.clone().lock_owned().await;
        Use { session: self.clone(), connection }
    }

    /// `None` while a statement has no reply.
    pub(super) fn try_use(self: &Arc<Self>) -> Option<Use> {
        let connection = self.connection.clone().try_lock_owned().ok()?;
        Some(Use { session: self.clone(), connection })
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        // A runtime that shuts down drops its work in the middle.
        if self.connection.is_busy {
            self.session.is_over.store(true, Ordering::Release);
        }
        if self.session.is_over() {
            self.connection.close();
        }
    }
}

impl Connection {
    fn close(&mut self) {
        if let Some(conn) = self.conn.take() {
            abandon(conn);
        }
    }
}

impl Drop for Connection {
    /// At once: the lock belongs to the connection.
    fn drop(&mut self) {
        self.close();
    }
}
