//! `mode`: many shared holders, or one exclusive one.

use lockattr::Error;

/// Reads the prices.
#[lockattr::distributed_lock(key = "prices:<shop>", mode = shared)]
pub async fn report(shop: &str) -> Result<usize, Error> {
    Ok(shop.len())
}
