//! A connection that is always there: made when first needed, replaced when it fails or falls
//! silent.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;
use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError, ServerErrorKind};
use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::combiner::Combiner;
use super::config::Config;
use super::counters::Raised;
use super::line::{Pulse, keep_line};
use super::listener::Listener;
use super::native::Native;
use super::post::{Post, channel};
use super::restart::GrantsFrom;
use super::scripts::Scripts;
use crate::store::StoreError;
use crate::store::last_answer::LastAnswer;

/// How long a failure to connect is told to those who ask next, before it is tried again.
const FAILURE_LASTS: Duration = Duration::from_millis(50);

/// One place in the pool.
pub(super) struct Link {
    pub(super) config: Config,
    pub(super) scripts: Arc<Scripts>,
    /// Where messages go that are published on this connection: one of a store's has them all.
    pub(super) post: Option<Arc<Post>>,
    /// By runtime, because a connection dies with the runtime that made it, and a manager may
    /// serve several: the tests of a program, or one runtime per worker thread. Few, so a hash of
    /// each would take longer than to look at all.
    lines: RwLock<Vec<(runtime::Id, Line)>>,
    last_id: AtomicU64,
    answered: LastAnswer,
}

/// How it stands with one runtime's connection.
enum Line {
    /// Made by a task of its own, so that a caller without patience does not end it for the others.
    Connecting(u64, Shared<oneshot::Receiver<Outcome>>),
    Live(Arc<Live>),
    Failed(Instant, StoreError),
}

/// What became of an attempt to connect.
pub(super) type Outcome = Result<Arc<Live>, StoreError>;

/// A connection that is thought to work.
pub(super) struct Live {
    connection: MultiplexedConnection,
    pub(super) pulse: Arc<Pulse>,
    pub(super) id: u64,
    /// The server at its other end, for errors.
    pub(super) address: Arc<str>,
    /// The inboxes whose messages it brings.
    subscribed: Mutex<HashSet<u64>>,
    /// What brings them, if the server pushes nothing.
    pub(super) listener: Option<Listener>,
    /// When the server grants again, if a restart made it forget leases that count.
    pub(super) grants: Option<GrantsFrom>,
    /// The command by which this server, at the end of this very connection, gives locks back.
    pub(super) native: Option<Native>,
    /// Which counters a script has raised over this connection.
    pub(super) raised: Raised,
    /// What sends the commands of many callers together.
    pub(super) combiner: Arc<Combiner>,
}

impl Link {
    pub(super) fn new(config: Config, scripts: Arc<Scripts>, post: Option<Arc<Post>>) -> Arc<Self> {
        let (lines, last_id) = Default::default();
        Arc::new(Self { config, scripts, post, lines, last_id, answered: LastAnswer::new() })
    }

    /// Sees to it that messages for this inbox come in.
    pub(super) async fn subscribe(self: &Arc<Self>, subscriber: u64) -> Result<(), StoreError> {
        let live = self.get().await?;
        self.subscribe_on(live, subscriber).await
    }

    /// The same for every inbox, on the connection with this id. Costs nothing where none is
    /// missing. Silent about failures, because each heartbeat does it again.
    pub(super) async fn subscribe_all(&self, id: u64) {
        for subscriber in self.post.iter().flat_map(|post| post.ids()) {
            let Some(live) = self.live_with(id) else { return };
            if self.subscribe_on(live, subscriber).await.is_err() {
                return;
            }
        }
    }

    async fn subscribe_on(&self, live: Arc<Live>, subscriber: u64) -> Result<(), StoreError> {
        if live.is_subscribed(subscriber) {
            return Ok(());
        }
        let outcome = match &live.listener {
            Some(listener) => listener.subscribe(subscriber).await,
            None => live.connection().subscribe(channel(subscriber)).await,
        };
        self.note(&live, outcome)?;
        live.subscribed(subscriber);
        Ok(())
    }

    /// The connection, made now if there is none.
    pub(super) async fn get(self: &Arc<Self>) -> Outcome {
        let runtime = Handle::try_current().map_err(|_| {
            StoreError::new("it can only be asked inside a tokio runtime").not_sent()
        })?;
        let usual = self.read().iter().find_map(|(of, line)| match line {
            Line::Live(live) if *of == runtime.id() => Some(live.clone()),
            _ => None,
        });
        if let Some(live) = usual {
            return Ok(live);
        }
        let attempt = {
            let mut lines = self.lines();
            let line = lines.iter().find(|(of, _)| *of == runtime.id());
            match line.map(|(_, line)| line) {
                Some(Line::Live(live)) => return Ok(live.clone()),
                Some(Line::Failed(at, error)) if at.elapsed() < FAILURE_LASTS => {
                    return Err(error.clone());
                }
                Some(Line::Connecting(_, attempt)) => attempt.clone(),
                _ => {
                    let id = self.last_id.fetch_add(1, Ordering::Relaxed);
                    let (sender, receiver) = oneshot::channel();
                    let attempt = receiver.shared();
                    put(&mut lines, runtime.id(), Line::Connecting(id, attempt.clone()));
                    runtime.spawn(keep_line(self.clone(), runtime.id(), id, sender));
                    attempt
                }
            }
        };
        attempt.await.unwrap_or_else(|_| {
            Err(StoreError::new("the runtime that connected to it has ended").not_sent())
        })
    }

    /// Takes note of how a command on `live` went.
    pub(super) fn note<T>(
        &self,
        live: &Live,
        outcome: Result<T, RedisError>,
    ) -> Result<T, StoreError> {
        let error = match outcome {
            Ok(_) if live.pulse.is_left() => {
                let sentence = format!("{} is not the master any more", live.address);
                return Err(StoreError::new(sentence));
            }
            Ok(value) => {
                live.pulse.replied();
                self.answered.now();
                return Ok(value);
            }
            Err(error) => error,
        };
        if error.is_timeout() {
            live.pulse.suspect();
            let limit = self.config.timing.response_timeout;
            let sentence = format!("no answer from {} within {limit:?}", live.address);
            return Err(StoreError::new(sentence).with_source(error));
        }
        // After a failover the old address may be a replica, and stay one.
        let demoted = [ServerErrorKind::ReadOnly, ServerErrorKind::MasterDown];
        let demoted = demoted.map(ErrorKind::Server).contains(&error.kind());
        if error.is_unrecoverable_error() || demoted {
            self.forget(live.id);
        }
        Err(error_from(&live.address, error))
    }

    /// Whether an answer has come since then.
    pub(super) fn answered_since(&self, since: Instant) -> bool {
        self.answered.since(since)
    }

    /// Connects, in the place that `id` was given.
    pub(super) async fn connect(self: &Arc<Self>, runtime: runtime::Id, id: u64) -> Outcome {
        let outcome = self.establish(id).await;
        if let Ok(live) = &outcome {
            let sends = live.combiner.clone().run(Arc::downgrade(self), Arc::downgrade(live));
            tokio::spawn(sends);
        }
        let line = match &outcome {
            Ok(live) => Line::Live(live.clone()),
            Err(error) => Line::Failed(Instant::now(), error.clone()),
        };
        put(&mut self.lines(), runtime, line);
        outcome
    }

    /// From here on each connection has to raise the counters again.
    pub(super) fn lower(&self) {
        for (_, line) in &*self.read() {
            if let Line::Live(live) = line {
                live.raised.clear();
            }
        }
    }

    /// The connection with this id, if it is still in use.
    pub(super) fn live_with(&self, id: u64) -> Option<Arc<Live>> {
        self.read().iter().find_map(|(_, line)| match line {
            Line::Live(live) if live.id == id => Some(live.clone()),
            _ => None,
        })
    }

    /// Uses the connection with this id no more.
    pub(super) fn forget(&self, id: u64) {
        let mut was_live = false;
        self.lines().retain(|(_, line)| match line {
            Line::Live(live) if live.id == id => {
                was_live = true;
                false
            }
            Line::Connecting(other, _) => *other != id,
            Line::Live(_) => true,
            Line::Failed(at, _) => at.elapsed() < FAILURE_LASTS,
        });
        if let Some(post) = self.post.as_ref().filter(|_| was_live) {
            post.interrupted();
        }
    }

    fn lines(&self) -> RwLockWriteGuard<'_, Vec<(runtime::Id, Line)>> {
        self.lines.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<(runtime::Id, Line)>> {
        self.lines.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the server at this address, or the way to it, answered instead.
pub(super) fn error_from(address: &str, error: RedisError) -> StoreError {
    StoreError::new(format!("{address}: {error}")).with_source(error)
}

impl Live {
    /// One that nothing is known of but what connecting has shown.
    pub(super) fn new(connection: MultiplexedConnection, id: u64, address: Arc<str>) -> Self {
        Self {
            connection,
            pulse: Arc::default(),
            id,
            address,
            subscribed: Mutex::default(),
            listener: None,
            grants: None,
            native: None,
            raised: Raised::none(),
            combiner: Arc::default(),
        }
    }

    /// The same connection, to send over.
    pub(super) fn connection(&self) -> MultiplexedConnection {
        self.connection.clone()
    }

    fn is_subscribed(&self, subscriber: u64) -> bool {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).contains(&subscriber)
    }

    /// It brings the messages of this inbox.
    pub(super) fn subscribed(&self, subscriber: u64) {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).insert(subscriber);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.combiner.close();
    }
}

/// Puts a runtime's line in the place of the one it had.
fn put(lines: &mut Vec<(runtime::Id, Line)>, runtime: runtime::Id, line: Line) {
    lines.retain(|(of, _)| *of != runtime);
    lines.push((runtime, line));
}
