//! `keys`: each as `key` would be, in one call.

use lockattr::Error;

/// Moves money.
#[lockattr::distributed_lock(keys = ["account:<from>", "account:<to.id>", format!("day:{day}")], ttl = "5s")]
pub async fn transfer(from: u64, to: Account, day: u32) -> Result<u64, Error> {
    Ok(from + to.id)
}

/// An account.
#[derive(Debug)]
pub struct Account {
    /// Its number.
    pub id: u64,
}
