//! Every option at once, as far as they go together.

use std::time::Duration;

use lockattr::{Error, LockManager};

/// An account.
#[derive(Debug)]
pub struct Account {
    id: u64,
    locks: LockManager,
}

impl Account {
    /// Pays out.
    #[lockattr::distributed_lock(
        key = "bank<<{<self.id>}:<currency.trim_matches('>')>",
        ttl = "1m30s",
        retry = 2 * 5,
        retry_delay = "150ms",
        wait = Duration::from_millis(u64::from(patience)),
        renew = true,
        max_hold = "1h",
        hold_at_least = "1m",
        on_busy = return(Ok(0)),
        on_lost = cancel,
        on_unavailable = error,
        reentrant = patience > 0,
        mode = exclusive,
        release = background,
        manager = &self.locks,
        lease = lease,
        crate = ::lockattr,
    )]
    #[must_use = "money"]
    pub async fn pay_out(&mut self, currency: &str, patience: u8) -> Result<u64, Error> {
        #![allow(clippy::unused_self)]
        Ok(u64::from(lease.fencing_token()) + self.id)
    }
}
