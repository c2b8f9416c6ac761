//! What a function asks of the store, checked before its first call.

use std::time::Duration;

use super::LockManager;
use crate::lock::key::LockKey;
use crate::store::Claim;
use crate::{Error, LockOptions};

/// What the calls of one function ask of the store, as far as it is known before them.
#[derive(Debug)]
pub(crate) struct Needs<'a> {
    /// Its keys. Their number matters; their texts may be templates.
    pub(crate) keys: &'a [&'a str],
    pub(crate) options: LockOptions,
    /// Whether its keys are done after a call.
    pub(crate) runs_once: bool,
    /// For how long, if that is known.
    pub(crate) period: Option<Duration>,
    #[cfg(feature = "share")]
    pub(crate) shares_result: bool,
}

impl LockManager {
    /// Refuses what this store cannot do, and options that do not fit the settings of this manager.
    pub(crate) fn check_store(&self, needs: &Needs<'_>) -> Result<(), Error> {
        let options = needs.options.resolve(self.settings())?;
        let key = |key: &&str| self.key(key).unwrap_or_else(|_| LockKey::named(key));
        let keys = needs.keys.iter().map(key).collect();
        let claim = Claim::labelled(0, keys, options.sharing, 0, |_| {});
        if let Some(why) = self.shared.core.store().refuses_claim(&claim) {
            return Err(Error::InvalidOptions(why));
        }
        if needs.runs_once {
            self.check_store_keeps_done()?;
        }
        if let Some(period) = needs.period {
            options.once_per(period, self.settings())?;
        }
        #[cfg(feature = "share")]
        if needs.shares_result {
            self.check_store_shares_results()?;
        }
        Ok(())
    }
}
