//! Acquires locks, and queues for them.

use std::future::ready;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::claims::{Held, State, deadline_after};
use super::inspect::{QueueStatus, held_by};
use super::places::Waits;
use super::requests::Tried;
use super::session::Session;
use super::wait::wait;
use super::waiter::Waiter;
use super::{Inner, refused};
use crate::FencingToken;
use crate::store::{AcquireOutcome, AcquireRequest, MAX_RECHECK, Sharing, StoreError, Waiting};

pub(super) fn token_from(counter: i64) -> FencingToken {
    FencingToken::from_counter(counter.unsigned_abs())
}

impl Inner {
    pub(super) async fn acquire(
        self: &Arc<Self>,
        request: &AcquireRequest,
    ) -> Result<AcquireOutcome, StoreError> {
        let AcquireRequest { claim, ttl, waiting, .. } = request;
        if let Some(why) = refused(claim.sharing()) {
            return Err(StoreError::new(why).not_sent());
        }
        let queued = *waiting != Waiting::Not;
        let state = self.claims.state(claim.token());
        if state.is_some() {
            // It asked before, over a connection that it still has.
            claim.departs();
        }
        match state {
            Some(State::Held(held)) if !held.released_at_end => {
                let (held_still, contended) = self.check_held(claim, &held).await?;
                if held_still {
                    self.claims.extend(claim.token(), *ttl);
                    return Ok(AcquireOutcome::Acquired { fencing: held.fencing, contended });
                }
                self.claims.remove(claim.token());
            }
            Some(State::Waiting(waiter)) if !waiter.is_over() => {
                let QueueStatus { holder, .. } = self.queue_status(claim, waiter.pid()).await?;
                return Ok(AcquireOutcome::Held { holder, queued: queued.then_some(MAX_RECHECK) });
            }
            Some(_) => self.undo(claim),
            None => {}
        }
        // A try would only learn that the lock is held. Without an idle session it may still be the
        // quicker way.
        if queued
            && self.contended.contains(claim.key().name(), Instant::now())
            && let Some(place) = self.sessions.place_of_idle()
        {
            claim.departs();
            return self.enqueue(request, Box::pin(ready(place))).await;
        }
        let session = self.shared(claim.key()).await?;
        // From here on there is something to undo.
        claim.departs();
        let holder = match self.claims.begin(claim, &session) {
            Ok(()) => match self.try_acquire_on(request, &session).await? {
                Some(acquired) => return Ok(acquired),
                None => None,
            },
            // Another claim uses this session, which would get the lock a second time.
            Err((other, ends)) => {
                let share = [claim, &other].iter().all(|it| it.sharing() == Sharing::Shared);
                let place = (share && !queued).then(|| self.sessions.free_place()).flatten();
                if let Some(place) = place {
                    let own = self.sessions.own(self, place).await?;
                    if self.claims.begin(claim, &own).is_ok()
                        && let Some(acquired) = self.try_acquire_on(request, &own).await?
                    {
                        return Ok(acquired);
                    }
                    self.sessions.recycle(&own);
                }
                // Without a lease it may not get the lock.
                ends.is_some().then(|| held_by(&other, ends, &session))
            }
        };
        if queued {
            return self.enqueue(request, self.sessions.place()).await;
        }
        let holder = match holder {
            Some(holder) => Some(holder),
            None => self.holder(claim.key()).await?,
        };
        Ok(AcquireOutcome::Held { holder: holder.map(Box::new), queued: None })
    }

    /// Tries to take the locks on this session, where `Claims::ask` has entered the claim.
    pub(super) async fn try_acquire_on(
        self: &Arc<Self>,
        request: &AcquireRequest,
        on: &Arc<Session>,
    ) -> Result<Option<AcquireOutcome>, StoreError> {
        let claim = &request.claim;
        match self.try_lock(on, claim, request.ttl).await {
            Ok(Tried::Taken(_, Some(counter))) => {
                let (on, fencing) = (on.clone(), token_from(counter));
                let held =
                    Held { on, fencing, ends: deadline_after(request.ttl), released_at_end: false };
                if !self.claims.hold(claim, held) {
                    return Err(StoreError::new("the connection that held the lock has ended"));
                }
                Ok(Some(AcquireOutcome::Acquired { fencing, contended: false }))
            }
            Ok(Tried::Taken(taken, None)) => {
                if taken.contains(&true) {
                    self.unlock_some(on, claim, Some(taken)).await?;
                }
                self.claims.remove(claim.token());
                self.contended.note(claim.key().name());
                Ok(None)
            }
            Ok(Tried::Refused(error)) => {
                self.claims.remove(claim.token());
                Err(error)
            }
            Err(error) => {
                // A failed statement does not release advisory locks.
                self.undo(claim);
                Err(error)
            }
        }
    }

    pub(super) async fn enqueue(
        self: &Arc<Self>,
        request: &AcquireRequest,
        place: Waits,
    ) -> Result<AcquireOutcome, StoreError> {
        let waiter = Waiter::new();
        self.claims.wait(&request.claim, &waiter);
        let (sender, outcome) = oneshot::channel();
        tokio::spawn(wait(self.clone(), request.clone(), waiter, sender, place));
        outcome.await.unwrap_or_else(|_| {
            Err(StoreError::new("the waiter was cancelled, or its tokio runtime has shut down"))
        })
    }
}
