//! The options of a call that runs once in a period: those that do not fit are refused.

use std::time::Duration;

use super::{OnLost, Release, ResolvedOptions, invalid};
use crate::Error;
use crate::lock::settings::Settings;
use crate::store::Sharing;

/// The longest period: that of a call for a value which never comes again, such as a date.
pub(crate) const LONGEST_PERIOD: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Refuses a period for which no key can be done.
pub(crate) fn check_period(period: Duration, longest: Duration) -> Result<(), Error> {
    if period.is_zero() {
        return Err(invalid(
            "`once_per` is zero: write how long the key is done, as in 22 hours".into(),
        ));
    }
    if period > LONGEST_PERIOD {
        return Err(invalid(format!(
            "`once_per` is {period:?}, and at most 366 days are allowed: shorten it"
        )));
    }
    if period > longest {
        return Err(invalid(format!(
            "`once_per` is {period:?}, and this store keeps a key done for {longest:?} at most: shorten it; a \
             Redlock quorum whose servers are durable keeps one longer, with `durable=true` in its URL"
        )));
    }
    Ok(())
}

impl ResolvedOptions {
    /// The same options for a call that runs once in `period`.
    pub(crate) fn once_per(self, period: Duration, defaults: &Settings) -> Result<Self, Error> {
        check_period(period, defaults.longest_ttl)?;
        let refused = [
            (
                self.sharing != Sharing::Exclusive,
                "`mode` and `permits`",
                "one caller runs the body",
            ),
            (
                self.release == Release::Background,
                "`release = background`",
                "the caller has to learn whether the key is done",
            ),
            (
                self.on_lost == OnLost::Ignore,
                "`on_lost = ignore`",
                "a body that lost its lease may run a second time",
            ),
        ];
        for (is_set, option, why) in refused {
            if is_set {
                return Err(invalid(format!(
                    "{option} cannot be combined with `once_per`: {why}; leave it out"
                )));
            }
        }
        Ok(Self { once_per: Some(period), reentrant: false, ..self })
    }
}
