//! Two attributes: the lower one is expanded last, so its lock is taken first.

use lockattr::Error;

/// Moves money between two accounts.
#[lockattr::distributed_lock(key = "account:<to>")]
#[lockattr::distributed_lock(key = "account:<from>")]
pub async fn transfer(from: u64, to: u64) -> Result<u64, Error> {
    Ok(from + to)
}
