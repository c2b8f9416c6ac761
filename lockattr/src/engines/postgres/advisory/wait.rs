//! A claim in the server's line: a statement on a session of its own that is answered when its turn
//! has come.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use tokio::sync::{Notify, oneshot, watch};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;

use super::super::failure::failure_of;
use super::Inner;
use super::acquire::token_numbered;
use super::claims::{Held, deadline_after};
use super::inspect::QueueStatus;
use super::session::Session;
use crate::store::{AcquireOutcome, AcquireRequest, MAX_RECHECK, StoreError};

/// A claim that waits.
pub(super) struct Waiter {
    gives_up: Notify,
    over: watch::Sender<bool>,
    /// The server process that waits in the queue for it, once there is one.
    pub(super) pid: AtomicI32,
}

impl Waiter {
    pub(super) fn new() -> Arc<Self> {
        let over = watch::Sender::new(false);
        Arc::new(Self { gives_up: Notify::new(), over, pid: AtomicI32::new(0) })
    }

    pub(super) fn give_up(&self) {
        self.gives_up.notify_one();
    }

    pub(super) fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Returns once it waits in the queue no more.
    pub(super) async fn over(&self) {
        // The sender lives as long as this does.
        let mut over = self.over.subscribe();
        let _never = over.wait_for(|over| *over).await;
    }
}

/// Says that it is over, however the task ends.
struct FinishOnDrop<'a>(&'a Waiter);

impl Drop for FinishOnDrop<'_> {
    fn drop(&mut self) {
        self.0.over.send_replace(true);
    }
}

type Reply = oneshot::Sender<Result<AcquireOutcome, StoreError>>;

/// What became of the statement.
enum Outcome {
    Answered(Result<(i64, i64, bool), tokio_postgres::Error>),
    GaveUp,
    /// It is unknown whether it waits in the queue: the process that asked learns so, and does not come back.
    Unknown(StoreError),
}

/// Stands in the queue until the lock is granted or the claim gives up; `told` hears that it stands there.
pub(super) async fn wait(
    inner: Arc<Inner>,
    asked: AcquireRequest,
    waits: Arc<Waiter>,
    told: Reply,
) {
    let _over = FinishOnDrop(&waits);
    let session = tokio::select! {
        biased;
        () = waits.gives_up.notified() => return,
        session = inner.sessions.own(&inner) => session,
    };
    let session = match session {
        Ok(session) => session,
        Err(error) => {
            inner.claims.remove(asked.claim.token());
            let _gone = told.send(Err(error));
            return;
        }
    };
    waits.pid.store(session.pid, Ordering::Release);
    session.waits.store(true, Ordering::Release);
    let mut told = Some(told);
    let mut locked = pin!(session.lock(&asked.claim, asked.ttl));
    let outcome = {
        let mut queued = pin!(wait_until_queued(&inner, &asked, session.pid));
        loop {
            tokio::select! {
                biased;
                () = waits.gives_up.notified() => break Outcome::GaveUp,
                answer = &mut locked => break Outcome::Answered(answer),
                stood = &mut queued, if told.is_some() => match stood {
                    Ok(stood) => drop(told.take().map(|told| told.send(Ok(stood)))),
                    Err(error) => break Outcome::Unknown(error),
                }
            }
        }
    };
    match outcome {
        Outcome::Answered(Ok((clock, number, contended))) => {
            session.waits.store(false, Ordering::Release);
            granted(&inner, &asked, &session, (clock, number, contended), told).await;
        }
        Outcome::Answered(Err(error)) => {
            // Some of several locks may be held: they go with the session.
            session.leave();
            let was_there = inner.claims.remove(asked.claim.token()).is_some();
            let error = failure_of(&inner.config.address, error).error;
            match told {
                Some(told) => drop(told.send(Err(error))),
                None if was_there => inner.ask_again(asked.claim.token()),
                None => {}
            }
        }
        Outcome::GaveUp => leave_queue(&inner, &asked, &session, locked).await,
        Outcome::Unknown(error) => {
            inner.claims.remove(asked.claim.token());
            // Its question may not have come there yet, and then there is nothing to cancel.
            session.leave();
            let _in_vain = inner.end(&asked.claim, &session).await;
            drop(told.map(|told| told.send(Err(error))));
        }
    }
}

/// Gets a session out of the server's line, in which it waits with `locked`.
async fn leave_queue<T>(
    inner: &Arc<Inner>,
    asked: &AcquireRequest,
    session: &Arc<Session>,
    locked: impl Future<Output = Result<T, tokio_postgres::Error>>,
) {
    let answer = async {
        inner.cancel(&asked.claim, session.pid).await.ok()?;
        timeout(inner.config.timing.response_timeout, locked).await.ok()
    };
    let ended = matches!(answer.await, Some(Err(error))
        if error.code() == Some(&SqlState::QUERY_CANCELED));
    // It may have been granted at the same time. If it was not ended by our word, that word may still
    // come, and end something else.
    if ended && session.run("select pg_advisory_unlock_all()").await.is_ok() {
        session.waits.store(false, Ordering::Release);
        inner.sessions.recycle(session);
    } else {
        session.leave();
    }
}

/// Asks until the server says that the claim waits in its queue: before that, one that comes later
/// might be before it.
async fn wait_until_queued(
    inner: &Arc<Inner>,
    asked: &AcquireRequest,
    pid: i32,
) -> Result<AcquireOutcome, StoreError> {
    loop {
        let QueueStatus { now, holder } = inner.queue_status(&asked.claim, pid).await?;
        if now {
            return Ok(AcquireOutcome::Held { holder, queued: Some(MAX_RECHECK) });
        }
    }
}

async fn granted(
    inner: &Arc<Inner>,
    asked: &AcquireRequest,
    session: &Arc<Session>,
    (clock, number, contended): (i64, i64, bool),
    told: Option<Reply>,
) {
    let claim = &asked.claim;
    let fencing = token_numbered(number);
    let held = Held { on: session.clone(), fencing, ends: deadline_after(asked.ttl), stays: false };
    if !inner.claims.hold(claim, held) {
        // It gave up at the same moment.
        if session.unlock(claim).await.is_ok() {
            inner.sessions.recycle(session);
        }
        return;
    }
    // Not before, or the session could end in between, and no process would be told.
    if session.is_over() {
        inner.claims.remove(claim.token());
        match told {
            Some(told) => {
                let error = StoreError::new("the connection has ended that had it");
                let _gone = told.send(Err(error));
            }
            None => inner.ask_again(claim.token()),
        }
        return;
    }
    match told {
        Some(told) => {
            let _gone = told.send(Ok(AcquireOutcome::Acquired { fencing, contended }));
        }
        None => {
            let (token, contended) = (claim.token(), u8::from(contended));
            let message = format!("granted {token} {number} {clock} {contended}");
            inner.notifications.deliver(token.subscriber(), &message);
        }
    }
}
