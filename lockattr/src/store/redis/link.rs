//! A connection that is always there: made when first needed, replaced when it fails or falls
//! silent.
//!
//! The client gives up on requests that time out but keeps their connection (redis-rs PR 1032), so
//! a link that is dead without a word would stay in use for ever. Hence the heartbeat.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use redis::aio::{MultiplexedConnection, SendError};
use redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisError};
use tokio::runtime::{self, Handle};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::config::Config;
use super::scripts::Scripts;
use crate::store::StoreError;

/// One place in the pool.
pub(super) struct Link {
    config: Config,
    scripts: Arc<Scripts>,
    /// By runtime, because a connection dies with the runtime that made it, and a manager may
    /// serve several: the tests of a program, or one runtime per worker thread.
    live: Mutex<HashMap<runtime::Id, Live>>,
    /// Held while connecting: those who come meanwhile share the outcome.
    connecting: tokio::sync::Mutex<Option<Failure>>,
    last_id: AtomicU64,
}

/// A connection that is thought to work.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) connection: MultiplexedConnection,
    id: u64,
    pulse: Arc<Pulse>,
}

/// Signs of life.
#[derive(Default)]
struct Pulse {
    replied: AtomicBool,
    suspected: Notify,
}

struct Failure {
    at: Instant,
    error: StoreError,
}

impl Link {
    pub(super) fn new(config: Config, scripts: Arc<Scripts>) -> Arc<Self> {
        Arc::new(Self {
            config,
            scripts,
            live: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            last_id: AtomicU64::new(0),
        })
    }

    /// The connection, made now if there is none.
    pub(super) async fn get(self: &Arc<Self>) -> Result<Live, StoreError> {
        let runtime = Handle::try_current().map_err(|_| outside())?.id();
        if let Some(live) = self.current(runtime) {
            return Ok(live);
        }
        let asked = Instant::now();
        let mut failure = self.connecting.lock().await;
        if let Some(live) = self.current(runtime) {
            return Ok(live);
        }
        // Whoever waited while another failed would only fail in the same way.
        if let Some(failure) = failure.as_ref().filter(|failure| failure.at >= asked) {
            return Err(failure.error.clone());
        }
        let id = self.last_id.fetch_add(1, Ordering::Relaxed);
        match self.connect(id).await {
            Ok(connection) => {
                *failure = None;
                Ok(self.adopt(runtime, connection, id))
            }
            Err(error) => {
                *failure = Some(Failure { at: Instant::now(), error: error.clone() });
                Err(error)
            }
        }
    }

    /// Takes note of how a command on `live` went.
    pub(super) fn note<T>(
        self: &Arc<Self>,
        live: &Live,
        outcome: Result<T, RedisError>,
    ) -> Result<T, StoreError> {
        let error = match outcome {
            Ok(value) => {
                live.pulse.replied.store(true, Ordering::Relaxed);
                return Ok(value);
            }
            Err(error) => error,
        };
        if error.is_timeout() {
            live.pulse.suspected.notify_one();
            let limit = self.config.timing.response_timeout;
            let sentence = format!("no answer from {} within {limit:?}", self.config.address);
            return Err(StoreError::new(sentence).with_source(error));
        }
        if error.is_unrecoverable_error() {
            self.forget(live.id);
        }
        Err(self.error(error))
    }

    async fn connect(self: &Arc<Self>, id: u64) -> Result<MultiplexedConnection, StoreError> {
        let timing = self.config.timing;
        let link = Arc::downgrade(self);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(timing.connect_timeout))
            .set_response_timeout(Some(timing.response_timeout))
            // Told at once when the server hangs up, so that no command is wasted on finding out.
            .set_push_sender(move |push: PushInfo| -> Result<(), SendError> {
                if push.kind == PushKind::Disconnection
                    && let Some(link) = link.upgrade()
                {
                    link.forget(id);
                }
                Ok(())
            });
        let connecting = async {
            let client = &self.config.client;
            let mut connection =
                client.get_multiplexed_async_connection_with_config(&config).await?;
            self.scripts.load(&mut connection).await?;
            Ok(connection)
        };
        // One limit for the whole of it: the client's own covers only parts.
        match timeout(timing.connect_timeout, connecting).await {
            Ok(connected) => connected.map_err(|error| self.error(error)),
            Err(_) => Err(StoreError::new(format!(
                "no connection to {} within {:?}",
                self.config.address, timing.connect_timeout
            ))),
        }
    }

    fn adopt(
        self: &Arc<Self>,
        runtime: runtime::Id,
        connection: MultiplexedConnection,
        id: u64,
    ) -> Live {
        let live = Live { connection, id, pulse: Arc::default() };
        self.live().insert(runtime, live.clone());
        let heartbeat = Heartbeat { link: Arc::downgrade(self), runtime, id };
        tokio::spawn(heartbeat.run(live.pulse.clone()));
        live
    }

    fn error(&self, error: RedisError) -> StoreError {
        StoreError::new(format!("{}: {error}", self.config.address)).with_source(error)
    }

    fn current(&self, runtime: runtime::Id) -> Option<Live> {
        self.live().get(&runtime).cloned()
    }

    fn forget(&self, id: u64) {
        self.live().retain(|_, live| live.id != id);
    }

    fn live(&self) -> MutexGuard<'_, HashMap<runtime::Id, Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn outside() -> StoreError {
    StoreError::new("it can only be asked inside a tokio runtime")
}

/// Asks a connection that said nothing for a while whether it is still there.
///
/// Holds neither the link nor the connection while it sleeps: both close with their store.
struct Heartbeat {
    link: Weak<Link>,
    runtime: runtime::Id,
    id: u64,
}

impl Heartbeat {
    async fn run(self, pulse: Arc<Pulse>) {
        let Some(interval) = self.link.upgrade().map(|link| link.config.timing.heartbeat) else {
            return;
        };
        loop {
            let suspected = timeout(interval, pulse.suspected.notified()).await.is_ok();
            let replied = pulse.replied.swap(false, Ordering::Relaxed);
            if replied && !suspected {
                continue;
            }
            if !self.answers().await {
                return;
            }
        }
    }

    /// Whether the connection is still in use and answers; any answer will do, an error too.
    async fn answers(&self) -> bool {
        let live = self.link.upgrade().and_then(|link| link.current(self.runtime));
        let Some(mut live) = live.filter(|live| live.id == self.id) else {
            return false;
        };
        match redis::cmd("PING").query_async::<()>(&mut live.connection).await {
            Ok(()) => true,
            Err(error) => !error.is_timeout() && !error.is_unrecoverable_error(),
        }
    }
}

impl Drop for Heartbeat {
    /// No heartbeat, no connection: also when a runtime ends and takes both along.
    fn drop(&mut self) {
        if let Some(link) = self.link.upgrade() {
            link.forget(self.id);
        }
    }
}
