//! The kit for tests of users, seen from such tests: what they script is what their code meets.

mod assert_held;
mod look;
mod outage;
mod registry;
mod script;

use std::time::Duration;

use lockattr::testing::TestLocks;
use lockattr::{Error, distributed_lock};
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);

/// A service's function as any: ten seconds of TTL, three of wait budget, a minute of work.
#[distributed_lock(key = "product:<id>", ttl = "10s", wait = "3s")]
async fn deduct(id: u64) -> Result<u64, Error> {
    sleep(60 * SECOND).await;
    Ok(id)
}

/// The outcomes of all acquisitions, as they are shown.
fn outcomes(locks: &TestLocks) -> Vec<String> {
    let acquisitions = locks.acquisitions();
    acquisitions.iter().map(|acquisition| acquisition.outcome.to_string()).collect()
}
