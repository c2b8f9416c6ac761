//! `hold_at_least`: the lock stays taken after a short body.

use lockattr::Error;

/// Runs once a night, on one node.
#[lockattr::distributed_lock(key = "nightly:<night>", wait = "0s", on_busy = skip, hold_at_least = "1m")]
pub async fn nightly(night: &str) -> Result<Option<usize>, Error> {
    Ok(Some(night.len()))
}
