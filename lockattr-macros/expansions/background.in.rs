//! What happens at the end: `on_lost` and `release`.

use lockattr::Error;

/// Imports in chunks.
#[lockattr::distributed_lock(key = "import", max_hold = "5m", on_lost = error, release = background)]
pub async fn import() -> Result<u32, Error> {
    Ok(4)
}

/// Imports again.
#[lockattr::distributed_lock(key = "import", renew = false, reentrant = false, on_lost = ignore, release = await)]
pub async fn import_again() -> Result<u32, Error> {
    Ok(4)
}
