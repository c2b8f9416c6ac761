//! Releases locks, and leaves the queue.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::FutureExt;
use tokio::time::timeout;

use super::Inner;
use super::claims::{Held, State};
use super::session::Session;
use crate::store::silence::unless_silent;
use crate::store::{Claim, ReleaseOutcome, ReleaseRequest, StoreError};

impl Inner {
    pub(super) async fn release(
        self: &Arc<Self>,
        release: &ReleaseRequest,
    ) -> Result<ReleaseOutcome, StoreError> {
        let ReleaseRequest { claim, after, .. } = release;
        let outcome = |held| if held { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld };
        match self.claims.state(claim.token()) {
            Some(State::Held(held)) if !held.released_at_end && !after.is_zero() => {
                let (held, _) = self.check_held(claim, &held).await?;
                if held {
                    self.claims.hold_at_least(claim.token(), *after);
                }
                return Ok(outcome(held));
            }
            _ => {}
        }
        match self.claims.leave(claim.token()) {
            Some(State::Requested(on) | State::Held(Held { on, .. })) if !on.is_over() => {
                match self.give_back_from_here(&on, claim).await {
                    Ok(held) => {
                        self.sessions.recycle(&on);
                        Ok(outcome(held))
                    }
                    Err(error) => {
                        if on.is_closed() {
                            self.end_abandoned(claim, &on).await;
                        }
                        Err(error)
                    }
                }
            }
            Some(State::Waiting(waiter)) => {
                waiter.cancel();
                let limit = self.config.timing.response_timeout;
                if timeout(limit, waiter.over()).await.is_err()
                    && let Some(on) = waiter.session.get()
                {
                    on.close();
                    self.end_abandoned(claim, on).await;
                }
                Ok(ReleaseOutcome::NotHeld)
            }
            Some(_of_an_ended_session) => {
                self.claims.remove(claim.token());
                Ok(ReleaseOutcome::NotHeld)
            }
            None => Ok(ReleaseOutcome::NotHeld),
        }
    }

    /// Releases the locks of a claim that leaves. The first poll sends the request, and until then
    /// no other claim uses the names on this session: it would lose its locks by this request.
    pub(super) async fn give_back(
        self: &Arc<Self>,
        on: &Arc<Session>,
        claim: &Arc<Claim>,
    ) -> Result<bool, StoreError> {
        let mut unlocked = pin!(self.unlock(on, claim));
        let sent = poll_fn(|context| Poll::Ready(unlocked.as_mut().poll(context))).await;
        self.claims.remove(claim.token());
        match sent {
            Poll::Ready(reply) => reply,
            Poll::Pending => unlocked.await,
        }
    }

    /// The same for a session that another runtime may drive. Closes the session if it is silent,
    /// because no thread may drive that runtime any more.
    async fn give_back_from_here(
        self: &Arc<Self>,
        on: &Arc<Session>,
        claim: &Arc<Claim>,
    ) -> Result<bool, StoreError> {
        if on.is_here() {
            return self.give_back(on, claim).await;
        }
        let limit = self.config.timing.response_timeout;
        let reply = unless_silent(&on.last_reply, limit, self.give_back(on, claim)).await;
        reply.unwrap_or_else(|| {
            on.close();
            let address = &self.config.address;
            Err(StoreError::new(format!("no answer from {address} within {limit:?}")))
        })
    }

    /// Ends a session that was closed without an answer. If the runtime that opened it is not driven
    /// any more, its connection stays open, and the server would keep its locks.
    async fn end_abandoned(self: &Arc<Self>, claim: &Arc<Claim>, on: &Session) {
        if self.end(claim, on).await.is_err() {
            // The next session ends it.
            self.leave(on);
        }
    }

    /// Removes a claim, and releases the locks that it may have got, behind the request for them.
    pub(super) fn undo(self: &Arc<Self>, claim: &Arc<Claim>) {
        match self.claims.leave(claim.token()) {
            Some(State::Requested(on) | State::Held(Held { on, .. })) if !on.is_over() => {
                // One poll sends it. If it fails, the session is closed.
                let _sent = self.give_back(&on, claim).now_or_never();
            }
            Some(State::Waiting(waiter)) => waiter.cancel(),
            Some(_of_an_ended_session) => drop(self.claims.remove(claim.token())),
            None => {}
        }
    }
}
