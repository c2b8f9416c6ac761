//! A slot in the pool: a task that sends one batch of requests after another on its connection.
//!
//! A caller may give up at any point. A statement that was sent still runs to its end, so that the
//! next one finds an idle connection.

use std::sync::Arc;

use mysql_async::prelude::Queryable;
use mysql_async::{Error, Row};
use tokio::runtime::{self, Handle};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::acquiring::{Acquiring, Acquirings};
use super::batch::{BatchError, Failure, LiveSession, Replies, answer};
use super::config::Config;
use super::connect::{AbandonedSession, Live};
use super::job::{Job, Query, Reply};
use super::requests::{Request, Requests};
use crate::FencingToken;
use crate::platform::sync::Mutex;
use crate::store::last_reply::LastReply;
use crate::store::slots::{FAILURE_CACHED_FOR, current_runtime};
use crate::store::{AcquireRequest, OwnerToken, ReleaseRequest, RenewRequest, StoreError};

/// Sweeps once in this many batches.
const SWEEP: u64 = 512;

pub(super) struct ConnectionSlot {
    shared: Arc<Shared>,
    /// By runtime, because a connection dies with the runtime that made it.
    tasks: Mutex<Vec<(runtime::Id, UnboundedSender<Job>)>>,
}

/// What the tasks of all runtimes share.
struct Shared {
    config: Arc<Config>,
    last_reply: LastReply,
    acquirings: Arc<Acquirings>,
    /// Sessions for which the server may still be at work. They are ended before the next batch, on
    /// whichever runtime, because that may release what they acquire.
    abandoned: Mutex<Vec<AbandonedSession>>,
}

impl ConnectionSlot {
    pub(super) fn new(config: Arc<Config>) -> Self {
        let (acquirings, abandoned) = Default::default();
        let shared = Shared { config, last_reply: LastReply::new(), acquirings, abandoned };
        Self { shared: Arc::new(shared), tasks: Mutex::default() }
    }

    /// Whether the server has replied to anything on this connection since then.
    pub(super) fn answered_since(&self, since: Instant) -> bool {
        self.shared.last_reply.is_after(since)
    }

    /// Runs a query.
    pub(super) async fn run(&self, query: Query) -> Result<Vec<Row>, StoreError> {
        let token = query.acquires;
        self.queue(token, |acquiring, reply| Job::Query(query, acquiring, reply)).await
    }

    /// Acquires the lock if it is free.
    pub(super) async fn acquire_free(
        &self,
        request: AcquireRequest,
        listener: Arc<str>,
    ) -> Result<Option<FencingToken>, StoreError> {
        let acquiring =
            self.shared.acquirings.begin(request.claim.token(), current_runtime()?.id());
        self.queue(None, |_, reply| Job::Acquire(request, listener, acquiring, reply)).await
    }

    pub(super) async fn renew(&self, renewal: RenewRequest) -> Result<bool, StoreError> {
        self.queue(None, |_, reply| Job::Renew(renewal, reply)).await
    }

    /// Releases the locks; with a plain statement first, if probably no claim waits for them.
    pub(super) async fn release(
        &self,
        release: ReleaseRequest,
        plain: bool,
    ) -> Result<bool, StoreError> {
        self.queue(None, |_, reply| Job::Release(release, plain, reply)).await
    }

    /// Queues a job, and waits for the answer. It may acquire locks for the claim with this token.
    async fn queue<T>(
        &self,
        acquires: Option<OwnerToken>,
        job: impl FnOnce(Option<Acquiring>, Reply<T>) -> Job,
    ) -> Result<T, StoreError> {
        let runtime = current_runtime()?;
        let acquiring = acquires.map(|token| self.shared.acquirings.begin(token, runtime.id()));
        let (reply, response) = oneshot::channel();
        self.send(&runtime, job(acquiring, reply));
        response.await.unwrap_or_else(|_| {
            Err(StoreError::new("the tokio runtime that sent the request has shut down"))
        })
    }

    fn send(&self, runtime: &Handle, job: Job) {
        let mut tasks = self.tasks.lock();
        // A closed task ended with its runtime.
        tasks.retain(|(_, task)| !task.is_closed());
        let elsewhere = job.releases().and_then(|token| self.shared.acquirings.runtime_of(token));
        let task_on = |id| tasks.iter().find(|(of, _)| *of == id).map(|(_, task)| task);
        let task = elsewhere.and_then(task_on).or_else(|| task_on(runtime.id()));
        let job = match task {
            Some(task) => match task.send(job) {
                Ok(()) => return,
                Err(unsent) => unsent.0,
            },
            None => job,
        };
        let (task, jobs) = unbounded_channel();
        runtime.spawn(Worker::new(self.shared.clone()).work(jobs));
        let _sent = task.send(job);
        tasks.push((runtime.id(), task));
    }
}

struct Worker {
    shared: Arc<Shared>,
    live: Option<Live>,
    /// Whether a statement is under way.
    busy: bool,
    failed: Option<(Instant, StoreError)>,
    completed: u64,
    /// Where the next sweep continues.
    swept: Vec<u8>,
}

impl Worker {
    fn new(shared: Arc<Shared>) -> Self {
        Self { shared, live: None, busy: false, failed: None, completed: 0, swept: Vec::new() }
    }

    /// Runs until the store is dropped.
    async fn work(mut self, mut jobs: UnboundedReceiver<Job>) {
        let mut requests = Requests::new();
        loop {
            while let Ok(job) = jobs.try_recv() {
                requests.push(job);
            }
            if let Some(batch) = requests.next_batch() {
                self.execute_batch(batch).await;
                continue;
            }
            match timeout(self.shared.config.timing.heartbeat, jobs.recv()).await {
                Ok(Some(job)) => requests.push(job),
                Ok(None) => break,
                Err(_) => self.check_idle().await,
            }
        }
        if let Some(live) = self.live.take() {
            let _closed = live.connection.disconnect().await;
        }
    }

    /// Sends a batch, and gives each caller its answer.
    async fn execute_batch(&mut self, mut batch: Vec<Job>) {
        let listener = batch.iter().rev().find_map(Job::listener).unwrap_or_default();
        // In one order, so that two batches seldom wait for each other's rows.
        batch.sort_by(|one, other| one.name().cmp(other.name()));
        let replies = self.run_batch(&batch, &listener).await;
        match replies {
            // The refusal may be about another request.
            Err(BatchError { refused: true, .. }) if batch.len() > 1 => {
                for job in batch {
                    let one = [job];
                    let replies = self.run_batch(&one, &listener).await;
                    answer(one.into(), replies);
                }
            }
            replies => answer(batch, replies),
        }
        if self.completed.is_multiple_of(SWEEP) {
            self.sweep().await;
        }
        self.completed += 1;
    }

    async fn run_batch(&mut self, batch: &[Job], listener: &str) -> Result<Replies, BatchError> {
        let mut first = None;
        loop {
            // An earlier attempt may have been executed.
            if let Err(error) = self.connect().await {
                return Err(first.unwrap_or(error).into());
            }
            let Some(live) = &mut self.live else { continue };
            let limit = self.shared.config.timing.response_timeout;
            self.busy = true;
            let mut session = LiveSession::new(live, limit, &self.shared.last_reply);
            let outcome = session.perform(batch, listener).await;
            self.busy = false;
            let failure = match outcome {
                Ok(replies) => return Ok(replies.after(first)),
                Err(failure) => failure,
            };
            let broken = failure.ends_connection();
            if broken {
                self.abandon();
            }
            let silent = matches!(failure, Failure::Silence);
            let error = failure.error(&self.shared.config);
            if silent || !broken || first.is_some() {
                return Err(BatchError { error, refused: !broken });
            }
            // The connection may have been dead for long without this process noticing.
            first = Some(error);
        }
    }

    /// Connects, unless it is connected, and ends the sessions that were abandoned.
    async fn connect(&mut self) -> Result<(), StoreError> {
        if self.live.is_none() {
            if let Some((at, error)) = &self.failed
                && at.elapsed() < FAILURE_CACHED_FOR
            {
                return Err(error.clone());
            }
            match Live::connect(&self.shared.config).await {
                Ok(live) => (self.live, self.failed) = (Some(live), None),
                Err(error) => {
                    self.failed = Some((Instant::now(), error.clone()));
                    return Err(error);
                }
            }
            self.shared.last_reply.record();
        }
        let next = || self.shared.abandoned.lock().pop();
        while let Some(session) = next() {
            let Some(live) = &mut self.live else { break };
            if let Err(error) = live.end(&self.shared.config, &session).await {
                self.shared.abandoned.lock().push(session);
                self.abandon();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Checks that an idle connection still works.
    async fn check_idle(&mut self) {
        let Some(live) = &mut self.live else { return };
        let limit = self.shared.config.timing.response_timeout;
        if !matches!(timeout(limit, live.connection.ping()).await, Ok(Ok(()))) {
            self.abandon();
        }
    }

    async fn sweep(&mut self) {
        let Some(live) = &mut self.live else { return };
        let sweep = live.connection.exec_first("CALL lockattr_v2_sweep(?)", (&self.swept,));
        match timeout(self.shared.config.timing.response_timeout, sweep).await {
            Ok(Ok(next)) => self.swept = next.unwrap_or_default(),
            // It yields to any conflicting transaction.
            Ok(Err(Error::Server(_))) => {}
            Ok(Err(_)) | Err(_) => self.abandon(),
        }
    }

    fn abandon(&mut self) {
        if let Some(live) = self.live.take() {
            self.shared.abandoned.lock().push(live.abandon());
        }
    }
}

impl Drop for Worker {
    /// The runtime ends in the middle of a statement.
    fn drop(&mut self) {
        if let Some(live) = self.live.as_ref().filter(|_| self.busy) {
            self.shared.abandoned.lock().push(live.session());
        }
    }
}
