//! The kit for users' tests, used as such tests use it: the code under test sees what the test
//! scripts.

mod assert_held;
mod look;
mod outage;
mod registry;
mod registry_check;
mod script;

use std::time::Duration;

use lockattr::testing::TestLocks;
use lockattr::{Error, distributed_lock};
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);

/// A typical function of a service: a TTL of ten seconds, a wait budget of three, and a minute of
/// work.
#[distributed_lock(key = "product:<id>", ttl = "10s", wait = "3s")]
async fn deduct(id: u64) -> Result<u64, Error> {
    sleep(60 * SECOND).await;
    Ok(id)
}

/// Returns the outcomes of all acquisitions as text.
fn outcomes(locks: &TestLocks) -> Vec<String> {
    let acquisitions = locks.acquisitions();
    acquisitions.iter().map(|acquisition| acquisition.outcome.to_string()).collect()
}
