//! The watchdog's batches of renewals and releases, and what their answers mean.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, timeout_at};

use super::Watchdog;
use super::queue::MIN_RETRY_PAUSE;
use super::releases::PendingRelease;
use crate::LostReason;
use crate::store::{ReleaseOutcome, RenewOutcome, RenewRequest, StoreError};

/// A batch in flight; the future also applies its answers.
pub(super) type UnderWay = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(super) fn send_renewals(watchdog: Arc<Watchdog>, batch: Vec<(u64, RenewRequest)>) -> UnderWay {
    Box::pin(async move {
        let (ids, renewals): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let requested_at = Instant::now();
        let responses =
            responses(async { watchdog.store.renew(&renewals).await }, renewals.len()).await;
        for ((id, renewal), response) in ids.into_iter().zip(&renewals).zip(responses) {
            watchdog.settle_renewal(id, renewal, response, requested_at);
        }
    })
}

/// Unconstrained, because the first poll has to send: tokio's budget must not delay it.
pub(super) fn send_releases(watchdog: Arc<Watchdog>, releases: Vec<PendingRelease>) -> UnderWay {
    let mut unanswered = Unanswered { watchdog, releases };
    Box::pin(unconstrained(async move {
        let releases = &unanswered.releases;
        let requested_at = Instant::now();
        let locks: Vec<_> = releases.iter().map(|release| release.request(requested_at)).collect();
        let store = &unanswered.watchdog.store;
        let responses = responses(async { store.release(&locks).await }, locks.len());
        // If the store hangs, the request is repeated while there is something to release.
        let mut responses =
            match timeout_at(requested_at + response_time(releases, requested_at), responses).await
            {
                Ok(responses) => responses,
                Err(_) => locks.iter().map(|_| Err(StoreError::new("it did not answer"))).collect(),
            };
        while let (Some(release), Some(response)) = (unanswered.releases.pop(), responses.pop()) {
            unanswered.watchdog.settle_release(release, response);
        }
        unanswered.watchdog.settled();
    }))
}

/// A third of the time that remains to release the last of them, or to remove it from a queue.
fn response_time(releases: &[PendingRelease], now: Instant) -> Duration {
    let remaining = |release: &PendingRelease| match release.until.saturating_duration_since(now) {
        Duration::ZERO => release.give_up_at.saturating_duration_since(now),
        remaining => remaining,
    };
    (releases.iter().map(remaining).max().unwrap_or_default() / 3).max(MIN_RETRY_PAUSE)
}

/// Releases in flight. A runtime that ends drops them. They then go back to the queue, because they
/// may not have been sent.
struct Unanswered {
    watchdog: Arc<Watchdog>,
    releases: Vec<PendingRelease>,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if !self.watchdog.is_of_this_process() {
            return;
        }
        for release in self.releases.drain(..) {
            self.watchdog.queue().put_back(release, Instant::now());
        }
    }
}

/// Exactly `count` answers, also from a store that panics or returns too few: the effect of those
/// commands is unknown, and the other leases must not suffer.
async fn responses<T>(
    request: impl Future<Output = Vec<Result<T, StoreError>>>,
    count: usize,
) -> Vec<Result<T, StoreError>> {
    let mut responses = AssertUnwindSafe(request).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("the store panicked");
        Vec::new()
    });
    responses.resize_with(count, || Err(StoreError::new("the store gave no answer")));
    responses
}

impl Watchdog {
    pub(super) fn settle_renewal(
        &self,
        id: u64,
        renewal: &RenewRequest,
        response: Result<RenewOutcome, StoreError>,
        requested_at: Instant,
    ) {
        let key = renewal.claim.key().as_str();
        // The lock was released meanwhile.
        let Some(hold) = self.queue().leases.hold(id) else { return };
        match response {
            Ok(RenewOutcome::Renewed) => {
                self.telemetry.renewal("renewed");
                hold.renewed(requested_at, renewal.ttl);
                self.queue().leases.renewed(id, requested_at, renewal.ttl);
            }
            Ok(RenewOutcome::NotHeld) => {
                self.telemetry.renewal("not_held");
                // Read again, because the lease may have been handed off.
                let hold = self.queue().leases.lose(id);
                hold.iter().for_each(|hold| self.lose(hold));
            }
            Err(error) => {
                self.telemetry.renewal("unknown");
                tracing::debug!(
                    lockattr.key = key, error.message = %error,
                    "a renewal got no answer; trying again"
                );
                self.queue().leases.renew_again(id, Instant::now());
            }
        }
    }

    fn settle_release(
        &self,
        release: PendingRelease,
        response: Result<ReleaseOutcome, StoreError>,
    ) {
        let key = release.lock.claim.key().as_str();
        match response {
            Err(error) => {
                self.telemetry.release("unknown");
                tracing::debug!(
                    lockattr.key = key, error.message = %error,
                    "a release got no answer; trying again"
                );
                let given_up = self.queue().release_again(release, Instant::now());
                // Outside the queue's mutex: a subscriber of the event may take a lock.
                if let Some(release) = given_up {
                    let key = release.lock.claim.key().as_str();
                    tracing::warn!(
                        lockattr.key = key,
                        "a release got no answer before the lease expired"
                    );
                }
                return;
            }
            Ok(ReleaseOutcome::Released) => self.telemetry.release("released"),
            // A lock that was never acquired, or was lost before, needs no warning.
            Ok(ReleaseOutcome::NotHeld) => {
                if let Some(hold) = release.held {
                    self.telemetry.release("not_held");
                    self.report_lost(&hold, LostReason::Taken);
                }
            }
        }
        self.queue().releases.settled();
    }
}
