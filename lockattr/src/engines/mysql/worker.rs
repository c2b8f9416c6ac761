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

use super::batch::{BatchError, Failure, LiveSession, Replies, answer};
use super::config::Config;
use super::connect::{AbandonedSession, Live};
use super::job::{Job, Query, Reply};
use super::requests::Requests;
use crate::FencingToken;
use crate::platform::sync::Mutex;
use crate::store::last_reply::LastReply;
use crate::store::slots::FAILURE_CACHED_FOR;
use crate::store::{AcquireRequest, ReleaseRequest, RenewRequest, StoreError};

/// Sweeps once in this many batches.
const SWEEP: u64 = 512;

pub(super) struct ConnectionSlot {
    config: Arc<Config>,
    last_reply: Arc<LastReply>,
    /// By runtime, because a connection dies with the runtime that made it.
    tasks: Mutex<Vec<(runtime::Id, UnboundedSender<Job>)>>,
}

impl ConnectionSlot {
    pub(super) fn new(config: Arc<Config>) -> Self {
        Self { config, last_reply: Arc::new(LastReply::new()), tasks: Mutex::default() }
    }

    /// Whether the server has replied to anything on this connection since then.
    pub(super) fn answered_since(&self, since: Instant) -> bool {
        self.last_reply.is_after(since)
    }

    /// Runs a query.
    pub(super) async fn run(&self, query: Query) -> Result<Vec<Row>, StoreError> {
        self.queue(|reply| Job::Query(query, reply)).await
    }

    /// Acquires the lock if it is free.
    pub(super) async fn acquire_free(
        &self,
        request: AcquireRequest,
        listener: Arc<str>,
    ) -> Result<Option<FencingToken>, StoreError> {
        self.queue(|reply| Job::Acquire(request, listener, reply)).await
    }

    pub(super) async fn renew(&self, renewal: RenewRequest) -> Result<bool, StoreError> {
        self.queue(|reply| Job::Renew(renewal, reply)).await
    }

    /// Releases the locks; with a plain statement first, if probably no claim waits for them.
    pub(super) async fn release(
        &self,
        release: ReleaseRequest,
        plain: bool,
    ) -> Result<bool, StoreError> {
        self.queue(|reply| Job::Release(release, plain, reply)).await
    }

    /// Queues a job, and waits for the answer.
    async fn queue<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T, StoreError> {
        let (reply, response) = oneshot::channel();
        self.send(job(reply))?;
        response.await.unwrap_or_else(|_| {
            Err(StoreError::new("the tokio runtime that sent the request has shut down"))
        })
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
        runtime.spawn(Worker::new(self).work(jobs));
        let _sent = task.send(job);
        tasks.push((runtime.id(), task));
        Ok(())
    }
}

struct Worker {
    config: Arc<Config>,
    last_reply: Arc<LastReply>,
    live: Option<Live>,
    abandoned: Option<AbandonedSession>,
    failed: Option<(Instant, StoreError)>,
    completed: u64,
    /// Where the next sweep continues.
    swept: Vec<u8>,
}

impl Worker {
    fn new(slot: &ConnectionSlot) -> Self {
        Self {
            config: slot.config.clone(),
            last_reply: slot.last_reply.clone(),
            live: None,
            abandoned: None,
            failed: None,
            completed: 0,
            swept: Vec::new(),
        }
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
            match timeout(self.config.timing.heartbeat, jobs.recv()).await {
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
            if self.live.is_none() {
                // An earlier attempt may have been executed.
                if let Err(error) = self.connect().await {
                    return Err(first.unwrap_or(error).into());
                }
            }
            let Some(live) = &mut self.live else { continue };
            let timing = &self.config.timing;
            let mut session = LiveSession::new(live, timing.response_timeout, &self.last_reply);
            let failure = match session.perform(batch, listener).await {
                Ok(replies) => return Ok(replies.after(first)),
                Err(failure) => failure,
            };
            let broken = failure.ends_connection();
            if broken {
                self.abandon();
            }
            let silent = matches!(failure, Failure::Silence);
            let error = failure.error(&self.config);
            if silent || !broken || first.is_some() {
                return Err(BatchError { error, refused: !broken });
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
                self.last_reply.record();
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
        let sweep = live.connection.exec_first("CALL lockattr_v2_sweep(?)", (&self.swept,));
        match timeout(self.config.timing.response_timeout, sweep).await {
            Ok(Ok(next)) => self.swept = next.unwrap_or_default(),
            // It yields to any conflicting transaction.
            Ok(Err(Error::Server(_))) => {}
            Ok(Err(_)) | Err(_) => self.abandon(),
        }
    }

    fn abandon(&mut self) {
        self.abandoned = self.live.take().map(Live::abandon);
    }
}
