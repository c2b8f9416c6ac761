//! The end of a hold whose key is done: the lock stays held for the rest of the period.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::held::OwnedLease;
use super::{LockGuard, Ownership};
use crate::lock::options::check_period;
use crate::store::{ReleaseOutcome, Sharing, StoreError};
use crate::{Error, LostReason};

/// The pause before a request without an answer is repeated.
const PAUSE: Duration = Duration::from_millis(100);

impl LockGuard {
    /// Ends the hold and marks the key as *done* until `period` has passed since the acquisition. If it has
    /// passed already, releases the lock.
    ///
    /// The counterpart of [`with_lock_once_per`](crate::LockManager::with_lock_once_per) for a guard: call it if
    /// the work succeeded, and [`release`](Self::release) otherwise. Call
    /// [`check_once_per`](crate::LockManager::check_once_per) before the work begins.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the lease was lost: another caller may do the work, or have done it.
    /// [`Error::Store`] if the store did not confirm, before the lease ended, that the key is done; `Ok` if the
    /// period ended before that.
    /// [`Error::InvalidOptions`] if the store cannot keep a key done, for a period of zero or more than 366
    /// days, and for a guard of a nested call, of several keys or of a lock that others share. The lock is
    /// released then.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the key may be done, or it is free after the end of the lease at the latest.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use std::time::Duration;
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let (manager, day) = (LockManager::connect("memory://").await?, Duration::from_secs(22 * 3600));
    /// manager.check_once_per(day)?;
    /// let guard = manager.acquire("invoices", LockOptions::new()).await?;
    /// println!("sends the invoices");
    /// guard.release_done(day).await?;
    /// assert!(manager.acquire("invoices", LockOptions::new()).await.unwrap_err().is_done());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn release_done(mut self, period: Duration) -> Result<(), Error> {
        if self.is_nested() || self.keys().count() > 1 || !self.is_exclusive() {
            return Err(Error::InvalidOptions(format!(
                "`{}` cannot be done: only an exclusive lock of one key can, and not in a nested call",
                self.key()
            )));
        }
        if let Some(why) = self.frame().core().store().refuses_done() {
            return Err(Error::InvalidOptions(why));
        }
        check_period(period, self.frame().core().store().longest_ttl())?;
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

impl LockGuard {
    fn is_exclusive(&self) -> bool {
        self.lease().frame().hold().sharing() == Sharing::Exclusive
    }
}

impl OwnedLease {
    async fn release_done(&mut self, period: Duration) -> Result<(), Error> {
        let Some(held) = &self.0 else { return Ok(()) };
        let (hold, core) = (held.frame.hold().clone(), held.frame.core().clone());
        // As `hold_at_least` counts: a lock may have been cached, or granted for a part of its lease.
        let until = held.frame.began().unwrap_or_else(Instant::now) + period;
        if Instant::now() >= until {
            return self.release().await;
        }
        // After this, the store knows the lock under its own claim only if it was never marked.
        let give_up_at = hold.expires_in_store_at();
        // Ends the renewals: those of a done key would be refused.
        hold.lose(LostReason::Released);
        let count = |outcome| core.watchdog.telemetry().release(outcome);
        let mut may_be_marked = false;
        loop {
            let now = Instant::now();
            // `hold_at_least` may be longer.
            let at_least = self.0.as_ref().and_then(|held| held.remaining_hold(now));
            let lasts = until.saturating_duration_since(now).max(at_least.unwrap_or_default());
            let marked = core.store().mark_done(hold.claim(), lasts);
            let failed = match timeout_at(give_up_at, marked).await {
                Ok(Ok(ReleaseOutcome::Released)) => {
                    count("done");
                    self.settle();
                    return Ok(());
                }
                // The mark of an earlier request has ended with the period. The store counts in milliseconds, by its own
                // clock, so it may be a little early.
                Ok(Ok(ReleaseOutcome::NotHeld))
                    if may_be_marked && Instant::now() + PAUSE >= until =>
                {
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
            may_be_marked = true;
            let next = Instant::now() + PAUSE;
            if next >= until {
                // The period is over, as that of a longer body. Dropping `self` releases what was not marked.
                return Ok(());
            }
            if next >= give_up_at {
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
