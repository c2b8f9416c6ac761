//! What a function asks of the store, checked before its first call.

use std::time::Duration;

use super::LockManager;
use crate::Error;
use crate::lock::key::LockKey;
use crate::store::{Claim, Sharing};

/// What the calls of one function ask of the store, as far as it is known before them.
#[derive(Debug)]
pub(crate) struct Needs<'a> {
    /// Its keys. Their texts do not matter, only their number.
    pub(crate) keys: &'a [&'a str],
    pub(crate) sharing: Sharing,
    /// Whether its keys are done after a call.
    pub(crate) runs_once: bool,
    /// For how long, if that is known.
    pub(crate) period: Option<Duration>,
    #[cfg(feature = "share")]
    pub(crate) shares_result: bool,
}

impl LockManager {
    /// Refuses what this store cannot do.
    pub(crate) fn check_store(&self, needs: &Needs<'_>) -> Result<(), Error> {
        let keys = needs.keys.iter().map(|key| LockKey::named(key)).collect();
        let claim = Claim::labelled(0, keys, needs.sharing, 0, |_| {});
        let store = self.shared.core.store();
        if let Some(why) = store.refuses_claim(&claim) {
            return Err(Error::InvalidOptions(why));
        }
        if needs.runs_once {
            self.check_store_keeps_done()?;
        }
        if let Some(period) = needs.period {
            self.check_once_per(period)?;
        }
        #[cfg(feature = "share")]
        if needs.shares_result {
            self.check_store_shares_results()?;
        }
        Ok(())
    }
}
