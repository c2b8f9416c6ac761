//! Options after the manager's defaults are applied, and the checks of their combinations.

#[cfg(feature = "share")]
use std::sync::Arc;
#[cfg(feature = "share")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{
    LockOptions, Mode, OnLost, Release, check_longest, check_retry_and_wait, check_retry_delay,
    check_ttl, invalid,
};
use crate::Error;
use crate::lock::retry::WaitBudget;
use crate::lock::settings::Settings;
use crate::lock::site::Site;
use crate::store::Sharing;

/// The longest `hold_at_least`: beyond it, some clock or store would overflow.
const MAX_HOLD_AT_LEAST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

impl LockOptions {
    /// Applies the manager's defaults and rejects contradictions.
    pub(crate) fn resolve(&self, defaults: &Settings) -> Result<ResolvedOptions, Error> {
        // The defaults were checked when the manager was built.
        let ttl = self.ttl.unwrap_or(defaults.ttl);
        if self.ttl.is_some() {
            check_ttl(ttl, defaults.longest_ttl)?;
        }
        if let Some(max_hold) = self.max_hold
            && max_hold < ttl
        {
            return Err(invalid(format!(
                "`max_hold` ({max_hold:?}) is shorter than `ttl` ({ttl:?}): shorten `ttl` too"
            )));
        }
        if let Some(least) = self.hold_at_least {
            self.check_hold_at_least(least, ttl, defaults.longest_ttl)?;
        }
        let sharing = self.sharing()?;
        if let Some(within) = self.progress_within {
            check_progress_within(within, ttl, sharing)?;
        }
        check_retry_and_wait(self.retry, self.wait)?;
        let delay = self.retry_delay.unwrap_or(defaults.retry_delay);
        if self.retry_delay.is_some() {
            check_retry_delay(delay)?;
        }
        let (retry, wait) = match (self.retry, self.wait) {
            (None, None) => (defaults.retry, Some(defaults.wait)),
            given => given,
        };
        Ok(ResolvedOptions {
            ttl,
            wait_budget: WaitBudget { retry, wait, delay },
            renew: self.renew,
            max_hold: self.max_hold,
            progress_within: self.progress_within,
            hold_at_least: self.hold_at_least,
            on_lost: self.on_lost.unwrap_or_default(),
            reentrant: self.reentrant,
            sharing,
            release: self.release,
            function: self.function,
            site: self.site,
            // A hold that was handed off would have no bound on its silence.
            by_store: self.progress_within.is_some(),
            campaigns: false,
            once_per: None,
            #[cfg(feature = "share")]
            waited: None,
        })
    }

    /// The same for a body on the calling thread, which cannot be cancelled.
    pub(crate) fn resolve_blocking(&self, defaults: &Settings) -> Result<ResolvedOptions, Error> {
        let on_lost = match self.on_lost {
            Some(OnLost::Cancel) => {
                return Err(invalid(
                    "`on_lost` is `Cancel`, and nothing can stop code that runs on the calling \
                     thread: set `Error` or `Ignore`, and call `ensure_held()` in the body"
                        .into(),
                ));
            }
            other => other.unwrap_or(OnLost::Error),
        };
        Ok(ResolvedOptions { on_lost, ..self.resolve(defaults)? })
    }

    fn check_hold_at_least(
        &self,
        least: Duration,
        ttl: Duration,
        longest: Duration,
    ) -> Result<(), Error> {
        if least > MAX_HOLD_AT_LEAST {
            return Err(invalid(format!(
                "`hold_at_least` is {least:?}, and at most 366 days are allowed: shorten it, or \
                 record in your own data that the work is done"
            )));
        }
        check_longest("hold_at_least", least, longest)?;
        if !self.renew && least > ttl {
            return Err(invalid(format!(
                "`hold_at_least` ({least:?}) is longer than `ttl` ({ttl:?}), which ends the lease \
                 without `renew`: lengthen `ttl`, or leave `renew` on"
            )));
        }
        match self.max_hold {
            Some(max_hold) if least > max_hold => Err(invalid(format!(
                "`hold_at_least` ({least:?}) is longer than `max_hold` ({max_hold:?}): shorten it, \
                 or lengthen `max_hold`"
            ))),
            _ => Ok(()),
        }
    }

    fn sharing(&self) -> Result<Sharing, Error> {
        match (self.mode, self.permits) {
            (Some(_), Some(_)) => Err(invalid(
                "`mode` and `permits` are both set: leave `permits` out for a read/write lock, or \
                 `mode` for a semaphore"
                    .into(),
            )),
            (_, Some(0)) => Err(invalid(
                "`permits` is 0, so the lock could never be held: write 1 or more".into(),
            )),
            (None, Some(permits)) => Ok(Sharing::Permits(permits)),
            (Some(Mode::Shared), None) => Ok(Sharing::Shared),
            (Some(Mode::Exclusive) | None, None) => Ok(Sharing::Exclusive),
        }
    }
}

fn check_progress_within(within: Duration, ttl: Duration, sharing: Sharing) -> Result<(), Error> {
    if within < ttl {
        return Err(invalid(format!(
            "`progress_within` ({within:?}) is shorter than `ttl` ({ttl:?}): shorten `ttl` too"
        )));
    }
    if sharing != Sharing::Exclusive {
        return Err(invalid(
            "`progress_within` bounds the silence of one holder, and this lock has several: leave it out, \
             or leave out `mode` and `permits`"
                .into(),
        ));
    }
    Ok(())
}

/// Options after the manager's defaults are applied.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedOptions {
    pub(crate) ttl: Duration,
    pub(crate) wait_budget: WaitBudget,
    pub(crate) renew: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) progress_within: Option<Duration>,
    pub(crate) hold_at_least: Option<Duration>,
    pub(crate) on_lost: OnLost,
    pub(crate) reentrant: bool,
    pub(crate) sharing: Sharing,
    pub(crate) release: Release,
    pub(crate) function: Option<&'static str>,
    pub(crate) site: Option<Site>,
    /// The store grants it each time: the process neither reuses another hold nor hands this one
    /// off.
    pub(crate) by_store: bool,
    /// Whether the call waits without a bound, to lead: it asks less often, and tells the watches who leads.
    pub(crate) campaigns: bool,
    /// How long the key is done after a body that ended `Ok`.
    pub(crate) once_per: Option<Duration>,
    /// Set when the call waits for another caller, if somebody wants to know.
    #[cfg(feature = "share")]
    pub(crate) waited: Option<Arc<AtomicBool>>,
}

impl ResolvedOptions {
    /// Records that the call waits for another caller.
    pub(crate) fn note_wait(&self) {
        #[cfg(feature = "share")]
        if let Some(waited) = &self.waited {
            waited.store(true, Ordering::Release);
        }
    }

    /// The options that remain after the call has waited for `waited`; `None` if it may not wait any
    /// more. Each `retry_delay` that was spent counts as a retry.
    pub(crate) fn remaining_after(&self, waited: Duration) -> Option<Self> {
        let WaitBudget { retry, wait, delay } = self.wait_budget;
        let wait = wait.map(|wait| wait.saturating_sub(waited));
        let retries =
            u32::try_from(waited.as_nanos() / delay.as_nanos().max(1)).unwrap_or(u32::MAX);
        let retry = retry.map(|retry| retry.saturating_sub(retries));
        let wait_budget = WaitBudget { retry, wait, delay };
        (!wait_budget.is_once()).then(|| Self { wait_budget, ..self.clone() })
    }

    /// The same, but a call whose wait budget is used up may still make one attempt.
    pub(crate) fn after_waiting(&self, waited: Duration) -> Self {
        let once = || Self { wait_budget: self.wait_budget.once(), ..self.clone() };
        self.remaining_after(waited).unwrap_or_else(once)
    }
}
