//! `permits`: a semaphore, whose size is any expression.

use lockattr::Error;

/// Calls a partner that allows a few connections.
#[lockattr::distributed_lock(key = "partner", permits = connections / 2, on_busy = skip)]
pub async fn call(connections: u32) -> Result<Option<u32>, Error> {
    Ok(Some(connections))
}
