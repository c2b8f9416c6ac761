//! `key = expression`: taken as it is. Durations by expression, and below a second.

use std::time::Duration;

use lockattr::Error;

const TTL: Duration = Duration::from_secs(20);

/// Renames a report.
#[lockattr::distributed_lock(key = format!("report:{}", old.to_lowercase()), ttl = TTL, wait = "1s 500ms", retry_delay = "250us")]
pub async fn rename(old: String, new: String) -> Result<String, Error> {
    drop(old);
    Ok(new)
}
