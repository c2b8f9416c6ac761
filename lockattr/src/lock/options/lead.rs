//! The options of a leader: those that do not fit one are refused.

use std::time::Duration;

use super::{LockOptions, OnLost, ResolvedOptions, invalid};
use crate::Error;
use crate::lock::retry::WaitBudget;
use crate::lock::settings::Settings;
use crate::store::Sharing;

/// The campaign has its own interval: the store's queue must not shorten it.
const ASK_EVERY: Duration = Duration::from_secs(15);

impl LockOptions {
    /// [`resolve`](Self::resolve) for a leader, which campaigns without an end.
    pub(crate) fn resolve_lead(&self, defaults: &Settings) -> Result<ResolvedOptions, Error> {
        let refused = [
            (self.wait.is_some(), "wait", "a campaign has no end"),
            (self.retry.is_some(), "retry", "a campaign has no end"),
            (self.retry_delay.is_some(), "retry_delay", "a follower is notified, and asks seldom"),
            (self.hold_at_least.is_some(), "hold_at_least", "a term ends when its body ends"),
            (
                self.on_lost.is_some_and(|on_lost| on_lost != OnLost::Cancel),
                "on_lost",
                "the body of a term is dropped when the term is lost",
            ),
        ];
        for (is_set, option, why) in refused {
            if is_set {
                return Err(invalid(format!("`{option}` is not for leaders: {why}; leave it out")));
            }
        }
        let resolved = self.resolve(defaults)?;
        if resolved.sharing != Sharing::Exclusive {
            return Err(invalid("there is one leader: leave out `mode` and `permits`".into()));
        }
        let wait_budget = WaitBudget { retry: None, wait: None, delay: ASK_EVERY };
        // Each term is granted by the store, and so has a place in its queue of its own.
        Ok(ResolvedOptions {
            wait_budget,
            reentrant: false,
            by_store: true,
            campaigns: true,
            ..resolved
        })
    }
}
