//! Releases locks, and leaves the queue.

use std::sync::Arc;

use futures_util::FutureExt;
use tokio::time::timeout;

use super::Inner;
use super::claims::{Held, State};
use super::session::Session;
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
        match self.claims.remove(claim.token()) {
            Some(State::Requested(on) | State::Held(Held { on, .. })) if !on.is_over() => {
                match on.unlock(claim).await {
                    Ok(held) => {
                        self.sessions.recycle(&on);
                        Ok(outcome(held))
                    }
                    Err(failure) => {
                        if on.is_closed() {
                            self.end_abandoned(claim, &on).await;
                        }
                        Err(failure.error)
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
            _ => Ok(ReleaseOutcome::NotHeld),
        }
    }

    /// Ends a session that was closed without an answer. If the runtime that opened it is not driven
    /// any more, its connection stays open, and the server would keep its locks.
    async fn end_abandoned(self: &Arc<Self>, claim: &Claim, on: &Session) {
        if self.end(claim, on).await.is_err() {
            // The next session ends it.
            self.leave(on);
        }
    }

    /// Removes a claim, and releases the locks that it may have got, behind the request for them.
    pub(super) fn undo(&self, claim: &Claim) {
        match self.claims.remove(claim.token()) {
            Some(State::Requested(on) | State::Held(Held { on, .. })) if !on.is_over() => {
                // One poll sends it. If it fails, the session is closed.
                let _sent = on.unlock(claim).now_or_never();
            }
            Some(State::Waiting(waiter)) => waiter.cancel(),
            _ => {}
        }
    }
}
