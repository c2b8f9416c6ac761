//! Releases locks, and leaves the queue.

use futures_util::FutureExt;
use tokio::time::timeout;

use super::Inner;
use super::claims::{Held, State};
use crate::store::{Claim, ReleaseOutcome, ReleaseRequest, StoreError};

impl Inner {
    pub(super) async fn release(
        &self,
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
                let held = on.unlock(claim).await.map_err(|failure| failure.error)?;
                self.sessions.recycle(&on);
                Ok(outcome(held))
            }
            Some(State::Waiting(waiter)) => {
                waiter.cancel();
                let limit = self.config.timing.response_timeout;
                timeout(limit, waiter.over()).await.map_err(|_| {
                    StoreError::new(format!(
                        "the claim is still in the server's wait queue after {limit:?}"
                    ))
                })?;
                Ok(ReleaseOutcome::NotHeld)
            }
            _ => Ok(ReleaseOutcome::NotHeld),
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
