//! A claim in the server's queue: a statement on its own session, answered by the grant.

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

pub(super) struct Waiter {
    gives_up: Notify,
    over: watch::Sender<bool>,
    /// The server process that waits for the claim, once there is one.
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

    /// Returns once the claim is no longer queued.
    pub(super) async fn over(&self) {
        // The sender lives as long as `self`.
        let mut over = self.over.subscribe();
        let _never = over.wait_for(|over| *over).await;
    }
}

/// Marks the waiter as over, however the task ends.
struct FinishOnDrop<'a>(&'a Waiter);

impl Drop for FinishOnDrop<'_> {
    fn drop(&mut self) {
        self.0.over.send_replace(true);
    }
}

type Reply = oneshot::Sender<Result<AcquireOutcome, StoreError>>;

enum Outcome {
    Answered(Result<(i64, i64, bool), tokio_postgres::Error>),
    GaveUp,
    /// It is unknown whether the claim is queued. The caller gets the error, and does not retry.
    Unknown(StoreError),
}

/// Waits until the lock is granted or the claim gives up. `told` reports that it is queued.
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
            // Some of several locks may be held: they end with the session.
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
            // The statement may not have reached the server yet: then there is none to cancel.
            session.leave();
            let _in_vain = inner.end(&asked.claim, &session).await;
            drop(told.map(|told| told.send(Err(error))));
        }
    }
}

/// Removes a session from the server's queue, in which it waits with `locked`.
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
    // The lock may have been granted at the same time. If the cancellation did not end the
    // statement, it may still arrive, and cancel another one.
    if ended && session.run("select pg_advisory_unlock_all()").await.is_ok() {
        session.waits.store(false, Ordering::Release);
        inner.sessions.recycle(session);
    } else {
        session.leave();
    }
}

/// Asks until the server reports the claim as queued. Until then, a later one might overtake it.
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
        // The claim gave up at the same moment.
        if session.unlock(claim).await.is_ok() {
            inner.sessions.recycle(session);
        }
        return;
    }
    // Checked after `hold`. Otherwise the session could end in between without a notification.
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
