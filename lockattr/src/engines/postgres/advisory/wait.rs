//! A claim in the server's queue: a statement on its own session, answered by the grant.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_postgres::error::SqlState;

use super::super::failure::failure_of;
use super::Inner;
use super::grant::granted;
use super::inspect::QueueStatus;
use super::places::{Waits, wait_for_place};
use super::session::Session;
use super::waiter::{FinishOnDrop, Waiter};
use crate::store::{AcquireOutcome, AcquireRequest, Claim, MAX_RECHECK, StoreError};

pub(super) type OutcomeSender = oneshot::Sender<Result<AcquireOutcome, StoreError>>;

/// A claim that is granted its lock within this time need not ask whether it is queued, which also
/// notifies the holder. Hot locks are handed off faster than that.
const SHORT: Duration = Duration::from_millis(1);

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
    place: Waits,
) {
    let _over = FinishOnDrop(&waiter);
    let mut sender = Some(sender);
    let Some(place) = wait_for_place(&inner, &request, &waiter, &mut sender, place).await else {
        return;
    };
    let session = tokio::select! {
        biased;
        () = waiter.cancelled.notified() => return,
        session = inner.sessions.own(&inner, place) => session,
    };
    let session = match session {
        Ok(session) => session,
        Err(error) => return inner.cannot_wait(&request.claim, sender, error),
    };
    let _first = waiter.session.set(session.clone());
    session.is_waiting.store(true, Ordering::Release);
    let mut locked = pin!(session.lock(&request.claim, request.ttl));
    let outcome = {
        let mut queued = pin!(async {
            sleep(SHORT).await;
            wait_until_queued(&inner, &request, session.pid).await
        });
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
        Outcome::Replied(Ok(reply)) => {
            session.is_waiting.store(false, Ordering::Release);
            granted(&inner, &request, &session, reply, sender).await;
        }
        Outcome::Replied(Err(error)) => {
            // Some of several locks may be held: they end with the session.
            session.close();
            let error = failure_of(&inner.config.address, error).error;
            inner.cannot_wait(&request.claim, sender, error);
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

impl Inner {
    /// A claim cannot wait any more. Reports that to its caller, who sends the next request.
    pub(super) fn cannot_wait(
        &self,
        claim: &Claim,
        sender: Option<OutcomeSender>,
        error: StoreError,
    ) {
        let was_there = self.claims.remove(claim.token()).is_some();
        match sender {
            Some(sender) => drop(sender.send(Err(error))),
            None if was_there => self.ask_again(claim.token()),
            None => {}
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
