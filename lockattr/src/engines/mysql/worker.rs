//! A slot in the pool: a task that runs one query after another on its connection.
//!
//! A caller may give up at any point. A query that was sent still runs to its end, so that the next
//! one finds an idle connection.

use std::sync::Arc;

use mysql_async::prelude::Queryable;
use mysql_async::{Error, Params, Row};
use tokio::runtime::{self, Handle};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::config::Config;
use super::connect::{AbandonedSession, Live, ends_connection, error_from};
use crate::platform::sync::Mutex;
use crate::store::StoreError;
use crate::store::slots::FAILURE_CACHED_FOR;

/// Sweeps once in this many queries.
const SWEEP: u64 = 512;

/// The server chose this transaction as the victim of a deadlock.
const DEADLOCK_CODES: [u16; 2] = [1213, 1020];

/// How often a query is run at most, if it is the victim of deadlocks.
const MAX_DEADLOCKS: usize = 10;

pub(super) struct Query {
    pub(super) statement: &'static str,
    pub(super) params: Params,
    /// What to do if the caller is gone or the connection breaks.
    pub(super) policy: SendPolicy,
}

/// Whether a query is still sent when no caller waits for it, and what the answer to a repeated
/// query is worth, if the connection broke before the first answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SendPolicy {
    /// It is not sent. The second answer counts as the first would.
    IfAwaited,
    /// It is sent. The second answer counts as the first would.
    Always,
    /// It is sent. If the second answer is no, the first query may have been executed: unknown.
    NoMeansUnknown,
}

struct Job {
    query: Query,
    sent_at: Instant,
    reply: oneshot::Sender<Result<Vec<Row>, StoreError>>,
}

pub(super) struct ConnectionSlot {
    config: Arc<Config>,
    /// By runtime, because a connection dies with the runtime that made it.
    tasks: Mutex<Vec<(runtime::Id, UnboundedSender<Job>)>>,
}

impl ConnectionSlot {
    pub(super) fn new(config: Arc<Config>) -> Self {
        Self { config, tasks: Mutex::default() }
    }

    /// Sends the query now, and returns a future of its answer.
    pub(super) fn run(
        &self,
        query: Query,
    ) -> impl Future<Output = Result<Vec<Row>, StoreError>> + use<> {
        let (reply, response) = oneshot::channel();
        let sent = self.send(Job { query, sent_at: Instant::now(), reply });
        async move {
            sent?;
            response.await.unwrap_or_else(|_| {
                Err(StoreError::new("the tokio runtime that sent the request has shut down"))
            })
        }
    }

    fn send(&self, job: Job) -> Result<(), StoreError> {
        let runtime = Handle::try_current().map_err(|_| {
            StoreError::new("this store can only be used inside a tokio runtime").not_sent()
        })?;
        let mut tasks = self.tasks.lock();
        // A closed task ended with its runtime.
        tasks.retain(|(_, task)| !task.is_closed());
        let known = tasks.iter().find(|(of, _)| *of == runtime.id());
        let job = match known {
            Some((_, task)) => match task.send(job) {
                Ok(()) => return Ok(()),
                Err(unsent) => unsent.0,
            },
            None => job,
        };
        let (task, jobs) = unbounded_channel();
        runtime.spawn(Worker::new(self.config.clone()).work(jobs));
        let _sent = task.send(job);
        tasks.push((runtime.id(), task));
        Ok(())
    }
}

struct Worker {
    config: Arc<Config>,
    live: Option<Live>,
    abandoned: Option<AbandonedSession>,
    /// When the connection was made.
    since: Instant,
    failed: Option<(Instant, StoreError)>,
    completed: u64,
}

impl Worker {
    fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            live: None,
            abandoned: None,
            since: Instant::now(),
            failed: None,
            completed: 0,
        }
    }

    /// Runs until the store is dropped.
    async fn work(mut self, mut jobs: UnboundedReceiver<Job>) {
        loop {
            match timeout(self.config.timing.heartbeat, jobs.recv()).await {
                Ok(Some(job)) => self.execute_job(job).await,
                Ok(None) => break,
                Err(_) => self.check_idle().await,
            }
        }
        if let Some(live) = self.live.take() {
            let _closed = live.connection.disconnect().await;
        }
    }

    async fn execute_job(&mut self, job: Job) {
        let Job { query, sent_at, reply } = job;
        if query.policy == SendPolicy::IfAwaited && reply.is_closed() {
            return;
        }
        let rows = self.run_query(&query, sent_at).await;
        let _no_receiver = reply.send(rows);
        if self.completed.is_multiple_of(SWEEP) {
            self.sweep().await;
        }
        self.completed += 1;
    }

    async fn run_query(&mut self, query: &Query, sent_at: Instant) -> Result<Vec<Row>, StoreError> {
        let limit = self.config.timing.response_timeout;
        let mut first = None;
        loop {
            if self.live.is_none() {
                // An earlier attempt may have been executed.
                if let Err(error) = self.connect().await {
                    return Err(first.unwrap_or(error));
                }
            }
            let Some(live) = &mut self.live else { continue };
            // Counted from when it could be sent; connecting has its own limit.
            let remaining = limit.saturating_sub(sent_at.max(self.since).elapsed());
            if remaining.is_zero() {
                let sentence = format!(
                    "{} has not replied to earlier requests within {limit:?}",
                    self.address()
                );
                return Err(first.unwrap_or_else(|| StoreError::new(sentence).not_sent()));
            }
            let error = match timeout(remaining, execute(live, query)).await {
                Ok(Ok(rows)) => match first {
                    Some(error)
                        if query.policy == SendPolicy::NoMeansUnknown && !all_held(&rows) =>
                    {
                        return Err(error);
                    }
                    _ => return Ok(rows),
                },
                Ok(Err(error)) => error,
                Err(_) => {
                    self.abandon();
                    let sentence = format!("no answer from {} within {limit:?}", self.address());
                    return Err(StoreError::new(sentence));
                }
            };
            let broken = ends_connection(&error);
            if broken {
                self.abandon();
            }
            let error = error_from(self.address(), error);
            if !broken || first.is_some() {
                return Err(error);
            }
            // The connection may have been dead for long without this process noticing.
            first = Some(error);
        }
    }

    async fn connect(&mut self) -> Result<(), StoreError> {
        if let Some((at, error)) = &self.failed
            && at.elapsed() < FAILURE_CACHED_FOR
        {
            return Err(error.clone());
        }
        match Live::connect(&self.config, self.abandoned.as_ref()).await {
            Ok(live) => {
                (self.live, self.abandoned, self.failed) = (Some(live), None, None);
                self.since = Instant::now();
                Ok(())
            }
            Err(error) => {
                self.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Checks that an idle connection still works.
    async fn check_idle(&mut self) {
        let Some(live) = &mut self.live else { return };
        let limit = self.config.timing.response_timeout;
        if !matches!(timeout(limit, live.connection.ping()).await, Ok(Ok(()))) {
            self.abandon();
        }
    }

    async fn sweep(&mut self) {
        let Some(live) = &mut self.live else { return };
        let sweep = live.connection.query_drop("CALL lockattr_v1_sweep()");
        match timeout(self.config.timing.response_timeout, sweep).await {
            // It yields to any conflicting transaction.
            Ok(Ok(()) | Err(Error::Server(_))) => {}
            Ok(Err(_)) | Err(_) => self.abandon(),
        }
    }

    fn abandon(&mut self) {
        self.abandoned = self.live.take().map(Live::abandon);
    }

    fn address(&self) -> &str {
        &self.config.address
    }
}

/// Whether each answer of a batch is yes.
fn all_held(rows: &[Row]) -> bool {
    let flags = rows.first().and_then(|row| row.get::<Vec<u8>, _>(0)).unwrap_or_default();
    !flags.contains(&b'0')
}

async fn execute(live: &mut Live, query: &Query) -> Result<Vec<Row>, Error> {
    for _ in 1..MAX_DEADLOCKS {
        match live.connection.exec(query.statement, query.params.clone()).await {
            Err(Error::Server(error)) if DEADLOCK_CODES.contains(&error.code) => {}
            outcome => return outcome,
        }
    }
    live.connection.exec(query.statement, query.params.clone()).await
}
