//! The end of a wait in the server's queue: the locks are granted.

use std::sync::Arc;

use super::Inner;
use super::acquire::token_from;
use super::claims::{Held, deadline_after};
use super::session::Session;
use super::wait::OutcomeSender;
use crate::store::{AcquireOutcome, AcquireRequest, StoreError};

/// Enters a claim whose wait in the server's queue has ended with its locks, and notifies its caller.
pub(super) async fn granted(
    inner: &Arc<Inner>,
    request: &AcquireRequest,
    session: &Arc<Session>,
    (counter, clock, contended): (i64, i64, bool),
    sender: Option<OutcomeSender>,
) {
    let claim = &request.claim;
    if contended {
        inner.contended.note(claim.key().name());
    }
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
            let _gone = sender.send(Ok(AcquireOutcome::Acquired { fencing, contended }));
        }
        None => {
            let (token, contended) = (claim.token(), u8::from(contended));
            let message = format!("granted {token} {counter} {clock} {contended}");
            inner.notifications.deliver(token.subscriber(), &message);
        }
    }
}
