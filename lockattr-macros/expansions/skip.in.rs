//! `on_busy = skip`, with and without a return type.

use lockattr::Error;

/// Sends the night's invoices on one node.
#[lockattr::distributed_lock(key = "nightly:<night>", wait = "0s", on_busy = skip)]
pub async fn nightly(night: &str) -> Result<Option<usize>, Error> {
    Ok(Some(night.len()))
}

/// Warms a cache on one node.
#[lockattr::distributed_lock(key = "warm", on_busy = skip)]
pub async fn warm() {}
