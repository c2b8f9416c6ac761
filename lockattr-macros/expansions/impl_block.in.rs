//! A whole `impl`, with options for all of it.

use lockattr::{Error, LockManager};

/// What a customer is about to buy.
#[derive(Debug)]
pub struct Cart {
    id: u64,
    prices: Vec<u64>,
    locks: LockManager,
}

#[lockattr::distributed_lock(ttl = "30s", manager = &self.locks)]
impl Cart {
    /// One more.
    #[lockattr::distributed_lock(key = "cart:<self.id>", ttl = "5s")]
    pub async fn add(&mut self, price: u64) -> Result<(), Error> {
        self.prices.push(price);
        Ok(())
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.prices.iter().sum()
    }
}
