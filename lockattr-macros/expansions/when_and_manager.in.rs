//! `when`, both ways to choose a `manager`, and `on_unavailable`.

use lockattr::{Error, LockManager};

/// Orders and their locks.
#[derive(Debug)]
pub struct Orders {
    locks: LockManager,
}

impl Orders {
    /// Sells, under a lock if there is anything to sell.
    #[lockattr::distributed_lock(key = "order:<id>", when = quantity > 0, manager = &self.locks)]
    pub async fn sell(&self, id: u64, quantity: u32) -> Result<u32, Error> {
        Ok(quantity)
    }
}

/// Warms a cache, twice rather than never.
#[lockattr::distributed_lock(key = "warm", manager = "caches", on_unavailable = run_unlocked)]
pub async fn warm() -> Result<(), Error> {
    Ok(())
}
