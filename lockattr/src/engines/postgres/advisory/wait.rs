//! A claim in the server's queue: a statement on its own session, answered by the grant.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use tokio::sync::{Notify, oneshot, watch};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;

use super::super::failure::failure_of;
use super::Inner;
use super::acquire::token_from;
use super::claims::{Held, deadline_after};
use super::inspect::QueueStatus;
use super::session::Session;
use crate::store::{AcquireOutcome, AcquireRequest, MAX_RECHECK, StoreError};

pub(super) struct Waiter {
    cancelled: Notify,
    over: watch::Sender<bool>,
    /// The server process that waits for the claim, once there is one.
    pub(super) pid: AtomicI32,
}

impl Waiter {
    pub(super) fn new() -> Arc<Self> {
        let over = watch::Sender::new(false);
        Arc::new(Self { cancelled: Notify::new(), over, pid: AtomicI32::new(0) })
    }

    pub(super) fn cancel(&self) {
        self.cancelled.notify_one();
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

type OutcomeSender = oneshot::Sender<Result<AcquireOutcome, StoreError>>;

enum Outcome {
    Replied(Result<(i64, i64, bool), tokio_postgres::Error>),
    Cancelled,
    /// It is unknown whether the claim is queued. The caller gets the error, and does not retry.
    Unknown(StoreError),
}

/// Waits until the lock is granted or the claim gives up. `sender` reports that it is queued.
pub(super) async fn wait(
    inner: Arc<Inner>,
    request: AcquireRequest,
    waiter: Arc<Waiter>,
    sender: OutcomeSender,
) {
    let _over = FinishOnDrop(&waiter);
    let session = tokio::select! {
        biased;
        () = waiter.cancelled.notified() => return,
        session = inner.sessions.own(&inner) => session,
    };
    let session = match session {
        Ok(session) => session,
        Err(error) => {
            inner.claims.remove(request.claim.token());
            let _gone = sender.send(Err(error));
            return;
        }
    };
    waiter.pid.store(session.pid, Ordering::Release);
    session.is_waiting.store(true, Ordering::Release);
    let mut sender = Some(sender);
    let mut locked = pin!(session.lock(&request.claim, request.ttl));
    let outcome = {
        let mut queued = pin!(wait_until_queued(&inner, &request, session.pid));
        loop {
            tokio::select! {
                biased;
                () = waiter.cancelled.notified() => break Outcome::Cancelled,
                reply = &mut locked => break Outcome::Replied(reply),
                status = &mut queued, if sender.is_some() => match status {
                    Ok(status) => drop(sender.take().map(|sender| sender.send(Ok(status)))),
                    Err(error) => break Outcome::Unknown(error),
                }
            }
        }
    };
    match outcome {
        Outcome::Replied(Ok((clock, counter, contended))) => {
            session.is_waiting.store(false, Ordering::Release);
            granted(&inner, &request, &session, (clock, counter, contended), sender).await;
        }
        Outcome::Replied(Err(error)) => {
            // Some of several locks may be held: they end with the session.
            session.close();
            let was_there = inner.claims.remove(request.claim.token()).is_some();
            let error = failure_of(&inner.config.address, error).error;
            match sender {
                Some(sender) => drop(sender.send(Err(error))),
                None if was_there => inner.ask_again(request.claim.token()),
                None => {}
            }
        }
        Outcome::Cancelled => leave_queue(&inner, &request, &session, locked).await,
        Outcome::Unknown(error) => {
            inner.claims.remove(request.claim.token());
            // The statement may not have reached the server yet: then there is none to cancel.
            session.close();
            let _in_vain = inner.end(&request.claim, &session).await;
            drop(sender.map(|sender| sender.send(Err(error))));
        }
    }
}

/// Removes a session from the server's queue, in which it waits with `locked`.
async fn leave_queue<T>(
    inner: &Arc<Inner>,
    request: &AcquireRequest,
    session: &Arc<Session>,
    locked: impl Future<Output = Result<T, tokio_postgres::Error>>,
) {
    let reply = async {
        inner.cancel(&request.claim, session.pid).await.ok()?;
        timeout(inner.config.timing.response_timeout, locked).await.ok()
    };
    let ended = matches!(reply.await, Some(Err(error))
        if error.code() == Some(&SqlState::QUERY_CANCELED));
    // The lock may have been granted at the same time. If the cancellation did not end the
    // statement, it may still arrive, and cancel another one.
    if ended && session.run("select pg_advisory_unlock_all()").await.is_ok() {
        session.is_waiting.store(false, Ordering::Release);
        inner.sessions.recycle(session);
    } else {
        session.close();
    }
}

/// Asks until the server reports the claim as queued. Until then, a later one might overtake it.
async fn wait_until_queued(
    inner: &Arc<Inner>,
    request: &AcquireRequest,
    pid: i32,
) -> Result<AcquireOutcome, StoreError> {
    loop {
        let QueueStatus { now, holder } = inner.queue_status(&request.claim, pid).await?;
        if now {
            return Ok(AcquireOutcome::Held { holder, queued: Some(MAX_RECHECK) });
        }
    }
}

async fn granted(
    inner: &Arc<Inner>,
    request: &AcquireRequest,
    session: &Arc<Session>,
    (clock, counter, contended): (i64, i64, bool),
    sender: Option<OutcomeSender>,
) {
    let claim = &request.claim;
    let fencing = token_from(counter);
    let held = Held {
        on: session.clone(),
        fencing,
        ends: deadline_after(request.ttl),
        released_at_end: false,
    };
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
        match sender {
            Some(sender) => {
                let error = StoreError::new("the connection that held the lock has ended");
                let _gone = sender.send(Err(error));
            }
            None => inner.ask_again(claim.token()),
        }
        return;
    }
    match sender {
        Some(sender) => {
            let _gone = sender.send(Ok(AcquireOutcome::Acquired { fencing, contended }));
        }
        None => {
            let (token, contended) = (claim.token(), u8::from(contended));
            let message = format!("granted {token} {counter} {clock} {contended}");
            inner.notifications.deliver(token.subscriber(), &message);
        }
    }
}
