//! The end of a hold whose key is done: the lock stays held for the rest of the period.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::held::OwnedLease;
use super::{LockGuard, Ownership};
use crate::store::{ReleaseOutcome, StoreError};
use crate::{Error, LostReason};

/// The pause before a request without an answer is repeated.
const PAUSE: Duration = Duration::from_millis(100);

impl LockGuard {
    /// Marks the key as done until `period` has passed since the acquisition. If it has passed already,
    /// releases the lock.
    pub(crate) async fn release_done(mut self, period: Duration) -> Result<(), Error> {
        self.observation.done();
        let held = self.lease().ensure_held();
        let released = match (&mut self.ownership, held) {
            (Ownership::Lock(_, owned), Ok(())) => owned.release_done(period).await,
            (_, held) => held,
        };
        self.observation.released(&released);
        released
    }
}

impl OwnedLease {
    async fn release_done(&mut self, period: Duration) -> Result<(), Error> {
        let Some(held) = &self.0 else { return Ok(()) };
        let (hold, core) = (held.frame.hold().clone(), held.frame.core().clone());
        let until = hold.requested_at() + period;
        if Instant::now() >= until {
            return self.release().await;
        }
        // After this, the store knows the lock under its own claim only if it was never marked.
        let give_up_at = hold.expires_in_store_at();
        // Ends the renewals: those of a done key would be refused.
        hold.lose(LostReason::Released);
        let count = |outcome| core.watchdog.telemetry().release(outcome);
        loop {
            let lasts = until.saturating_duration_since(Instant::now());
            let marked = core.store().mark_done(hold.claim(), lasts);
            let failed = match timeout_at(give_up_at, marked).await {
                Ok(Ok(ReleaseOutcome::Released)) => {
                    count("done");
                    self.settle();
                    return Ok(());
                }
                Ok(Ok(ReleaseOutcome::NotHeld)) => {
                    count("not_held");
                    core.watchdog.report_lost(&hold, LostReason::Taken);
                    self.settle();
                    return Err(hold.lost(LostReason::Taken));
                }
                Ok(Err(error)) => error,
                Err(_) => StoreError::new("it did not answer"),
            };
            count("unknown");
            if Instant::now() + PAUSE >= give_up_at {
                // Dropping `self` keeps trying to release what was not marked.
                return Err(unconfirmed(&failed).about(&hold.claim().named()));
            }
            sleep(PAUSE).await;
        }
    }
}

fn unconfirmed(failed: &StoreError) -> StoreError {
    StoreError::new(format!(
        "the body ended `Ok`, but the store did not confirm that its key is done, so it may run again: {failed}"
    ))
}
