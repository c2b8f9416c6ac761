//! The end of a wait in the server's queue: the locks are granted.

use std::sync::Arc;

use tokio::time::sleep;

use super::Inner;
use super::acquire::token_from;
use super::claims::{Held, State, deadline_after};
use super::session::Session;
use super::wait::{OutcomeSender, SHORT};
use crate::store::{AcquireOutcome, AcquireRequest, Claim, StoreError};

/// Enters a claim whose wait in the server's queue has ended with its locks, and notifies its caller.
pub(super) async fn granted(
    inner: &Arc<Inner>,
    request: &AcquireRequest,
    session: &Arc<Session>,
    (counter, clock): (i64, i64),
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
        if inner.unlock(session, claim).await.is_ok() {
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
            let _gone = sender.send(Ok(AcquireOutcome::Acquired { fencing, contended: false }));
        }
        None => {
            let token = claim.token();
            let message = format!("granted {token} {counter} {clock} 0");
            inner.notifications.deliver(token.subscriber(), &message);
        }
    }
    // A short hold ends before it matters whether others wait.
    sleep(SHORT).await;
    inner.note_if_contended(claim).await;
}

impl Inner {
    /// Notifies the holder if others wait for its locks.
    async fn note_if_contended(self: &Arc<Self>, claim: &Arc<Claim>) {
        let Some(State::Held(held)) = self.claims.state(claim.token()) else { return };
        if held.released_at_end || held.on.is_over() {
            return;
        }
        let checked = self.check_all(&held.on, std::iter::once(claim)).await.pop();
        // The next renewal checks again.
        let Some(Ok((_, contended))) = checked else { return };
        for (key, contended) in claim.keys().iter().zip(contended) {
            if contended {
                self.contended.note(key.name());
                self.contended(claim.token(), key.name());
            }
        }
    }
}
