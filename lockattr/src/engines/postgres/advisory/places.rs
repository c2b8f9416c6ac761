//! A claim that waits for one of the few places in the server's queue, which each take a connection.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::{Instant, sleep};

use super::Inner;
use super::acquire::token_from;
use super::claims::{Claims, Held, deadline_after};
use super::inspect::QueueStatus;
use super::requests::Tried;
use super::sessions::Place;
use super::wait::OutcomeSender;
use super::waiter::Waiter;
use crate::store::{AcquireOutcome, AcquireRequest, Grant, MAX_RECHECK, OwnerToken};

/// Waits for a place. Its turn is that of its first poll.
pub(super) type Waits = Pin<Box<dyn Future<Output = Place> + Send>>;

/// This many claims that wait for a place try every `recheck_every`; twice as many try half as often.
const OFTEN: usize = 32;

/// Waits for a place in the server's queue, and meanwhile tries to take the locks without one:
/// otherwise the holder of all places could wait for a free lock, and the places for that holder.
///
/// Returns `None` if the claim was granted its locks, or given up. `sender` reports that it waits.
pub(super) async fn wait_for_place(
    inner: &Arc<Inner>,
    request: &AcquireRequest,
    waiter: &Arc<Waiter>,
    sender: &mut Option<OutcomeSender>,
    mut place: Waits,
) -> Option<Place> {
    if let Some(place) = place.as_mut().now_or_never() {
        return Some(place);
    }
    let status = tokio::select! {
        biased;
        () = waiter.cancelled.notified() => return None,
        status = inner.queue_status(&request.claim, 0) => status,
    };
    match status {
        Ok(QueueStatus { holder, .. }) => {
            let waits = AcquireOutcome::Held { holder, queued: Some(MAX_RECHECK) };
            drop(sender.take().map(|sender| sender.send(Ok(waits))));
        }
        Err(error) => {
            inner.cannot_wait(&request.claim, sender.take(), error);
            return None;
        }
    }
    loop {
        tokio::select! {
            biased;
            () = waiter.cancelled.notified() => return None,
            place = &mut place => return Some(place),
            () = sleep(pause(request.recheck_every, inner.sessions.waiting_for_places())) => {}
        }
        if let Meanwhile::Over = inner.try_meanwhile(request).await {
            return None;
        }
    }
}

fn pause(recheck_every: Duration, waiting: usize) -> Duration {
    let times = u32::try_from(1 + waiting / OFTEN).unwrap_or(u32::MAX);
    recheck_every.saturating_mul(times).min(MAX_RECHECK)
}

enum Meanwhile {
    /// The locks are held elsewhere.
    Held,
    /// The claim does not wait any more.
    Over,
}

impl Inner {
    /// Tries to take the locks of a waiting claim on the shared session.
    async fn try_meanwhile(self: &Arc<Self>, request: &AcquireRequest) -> Meanwhile {
        let claim = &request.claim;
        let token = claim.token();
        // Without a connection, the next try may have one.
        let Ok(on) = self.shared(claim.key()).await else { return Meanwhile::Held };
        if !self.claims.try_on(claim, on.id) {
            return Meanwhile::Held;
        }
        let trying = Trying(&self.claims, Some(token));
        let sent_at = Instant::now();
        let taken = match self.try_lock(&on, claim, request.ttl).await {
            Ok(Tried::Taken(_, Some(counter))) => {
                let (on, fencing) = (on.clone(), token_from(counter));
                let ends = deadline_after(request.ttl);
                if self.claims.hold(claim, Held { on, fencing, ends, released_at_end: false }) {
                    trying.holds();
                    let subscribers = &self.notifications.subscribers;
                    if let Some(subscriber) = subscribers.get(token.subscriber()) {
                        subscriber.granted(token, Grant::new(fencing, sent_at, false));
                    }
                    return Meanwhile::Over;
                }
                vec![true; claim.keys().len()]
            }
            Ok(Tried::Taken(taken, None)) => taken,
            Ok(Tried::Refused(_)) => Vec::new(),
            Err(_) => vec![true; claim.keys().len()],
        };
        // The claim gave up, or has only some of its locks, or the outcome is unknown.
        if taken.contains(&true) {
            // If that fails, the session is closed, and the locks end with it.
            let _left = self.unlock_some(&on, claim, Some(taken)).await;
        }
        if trying.end() { Meanwhile::Held } else { Meanwhile::Over }
    }
}

/// A claim that tries on a shared session. Dropped, it tries no more: its runtime may end before
/// that of the session.
struct Trying<'a>(&'a Claims, Option<OwnerToken>);

impl Trying<'_> {
    /// Returns whether it still waits.
    fn end(mut self) -> bool {
        self.1.take().is_some_and(|token| self.0.end_try(token))
    }

    fn holds(mut self) {
        self.1 = None;
    }
}

impl Drop for Trying<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.1.take() {
            self.0.end_try(token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: the number of claims that wait, or the limit.
    #[test]
    fn the_more_claims_wait_for_a_place_the_less_often_each_tries() {
        let every = Duration::from_millis(100);
        for (waiting, times) in [(1, 1), (31, 1), (32, 2), (320, 11), (usize::MAX, 150)] {
            assert_eq!(pause(every, waiting), every * times, "{waiting}");
        }
    }
}
