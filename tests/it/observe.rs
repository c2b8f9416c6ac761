//! What an operator sees of locks: metrics by template, and spans and events with promised names.

mod counted;
mod ended;
mod inside;
mod labels;
mod losses;
mod metrics;
mod passed_on;
mod spans;
mod trace;
mod traced;

use std::time::Duration;

use lockattr::{Error, LockManager, distributed_lock};
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

fn memory() -> LockManager {
    LockManager::builder().url("memory://").service("observed").build().unwrap()
}

/// A body that takes a while and emits an event.
#[distributed_lock(key = "product:<id>", manager = manager, wait = "1s")]
async fn sell(manager: &LockManager, id: u64, takes: Duration) -> Result<(), Error> {
    sleep(takes).await;
    tracing::info!(id, "sold");
    Ok(())
}
