//! Options with nothing left open, and which combinations make no sense.

use std::time::Duration;

use super::{
    LockOptions, Mode, OnLost, Release, check_longest, check_retry_and_wait, check_retry_delay,
    check_ttl, refused,
};
use crate::Error;
use crate::retry::Patience;
use crate::settings::Settings;
use crate::site::Site;
use crate::store::Sharing;

impl LockOptions {
    /// Fills in the manager's defaults and refuses what contradicts itself.
    pub(crate) fn resolve(&self, defaults: &Settings) -> Result<Terms, Error> {
        let ttl = self.ttl.unwrap_or(defaults.ttl);
        check_ttl(ttl, defaults.longest_ttl)?;
        let least = self.hold_at_least.unwrap_or_default();
        check_longest("hold_at_least", least, defaults.longest_ttl)?;
        if let Some(max_hold) = self.max_hold
            && max_hold < ttl
        {
            return Err(refused(format!(
                "`max_hold` ({max_hold:?}) is shorter than `ttl` ({ttl:?}): shorten `ttl` too"
            )));
        }
        self.check_hold_at_least(ttl)?;
        let sharing = self.sharing()?;
        check_retry_and_wait(self.retry, self.wait)?;
        let delay = self.retry_delay.unwrap_or(defaults.retry_delay);
        check_retry_delay(delay)?;
        let (retry, wait) = match (self.retry, self.wait) {
            (None, None) => (defaults.retry, Some(defaults.wait)),
            given => given,
        };
        Ok(Terms {
            ttl,
            patience: Patience { retry, wait, delay },
            renew: self.renew,
            max_hold: self.max_hold,
            hold_at_least: self.hold_at_least,
            on_lost: self.on_lost.unwrap_or_default(),
            reentrant: self.reentrant,
            sharing,
            release: self.release,
            function: self.function,
            site: self.site,
            by_store: false,
        })
    }

    /// The same for a body that runs on the calling thread, where nothing can cancel it.
    pub(crate) fn resolve_blocking(&self, defaults: &Settings) -> Result<Terms, Error> {
        let on_lost = match self.on_lost {
            Some(OnLost::Cancel) => {
                return Err(refused(
                    "`on_lost` is `Cancel`, and nothing can stop code that runs on the calling \
                     thread: take `Error` or `Ignore`, and ask `ensure_held()` in the body"
                        .into(),
                ));
            }
            other => other.unwrap_or(OnLost::Error),
        };
        Ok(Terms { on_lost, ..self.resolve(defaults)? })
    }

    fn check_hold_at_least(&self, ttl: Duration) -> Result<(), Error> {
        let Some(least) = self.hold_at_least else {
            return Ok(());
        };
        if !self.renew && least > ttl {
            return Err(refused(format!(
                "`hold_at_least` ({least:?}) is longer than `ttl` ({ttl:?}), which ends the lease \
                 without `renew`: lengthen `ttl`, or leave `renew` on"
            )));
        }
        match self.max_hold {
            Some(max_hold) if least > max_hold => Err(refused(format!(
                "`hold_at_least` ({least:?}) is longer than `max_hold` ({max_hold:?}): shorten it, \
                 or lengthen `max_hold`"
            ))),
            _ => Ok(()),
        }
    }

    fn sharing(&self) -> Result<Sharing, Error> {
        match (self.mode, self.permits) {
            (Some(_), Some(_)) => Err(refused(
                "`mode` and `permits` are both set: leave `permits` out for a read/write lock, or \
                 `mode` for a semaphore"
                    .into(),
            )),
            (_, Some(0)) => Err(refused(
                "`permits` is 0, so that nobody could ever hold the lock: write 1 or more".into(),
            )),
            (None, Some(permits)) => Ok(Sharing::Permits(permits)),
            (Some(Mode::Shared), None) => Ok(Sharing::Shared),
            (Some(Mode::Exclusive) | None, None) => Ok(Sharing::Exclusive),
        }
    }
}

/// Options with nothing left open.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) ttl: Duration,
    pub(crate) patience: Patience,
    pub(crate) renew: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) hold_at_least: Option<Duration>,
    pub(crate) on_lost: OnLost,
    pub(crate) reentrant: bool,
    pub(crate) sharing: Sharing,
    pub(crate) release: Release,
    pub(crate) function: Option<&'static str>,
    pub(crate) site: Option<Site>,
    /// The store grants it each time: it is neither had from another hold of this process nor handed on.
    pub(crate) by_store: bool,
}
